// The file as pieces of invoices and rejected rows: bytes from the disk, unpacked and decoded on
// the way. The run pulls: nothing is read ahead of it but the streams' own buffers.

import { createReadStream, statSync } from 'node:fs'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { CsvError } from './online-retail/csv.ts'
import { OnlineRetailReader, type Piece } from './online-retail/reader.ts'
import type { IngestOptions } from './options.ts'

const CHUNK_BYTES = 256 * 1024

export interface Source {
  readonly pieces: AsyncIterable<Piece>
  readonly reader: OnlineRetailReader
  /** Share of the file that is read, 0 to 1. */
  readonly progress: () => number
}

/** Opens the file. The pieces throw `CsvError` for what can't be read on. */
export function openSource(options: Pick<IngestOptions, 'file' | 'encoding'>): Source {
  const size = statSync(options.file).size
  const file = createReadStream(options.file, { highWaterMark: CHUNK_BYTES })
  const reader = new OnlineRetailReader()
  return {
    reader,
    pieces: readPieces(reader, bytesOf(file, options.file), options.encoding),
    progress: () => (size === 0 ? 1 : file.bytesRead / size),
  }
}

function bytesOf(
  file: ReturnType<typeof createReadStream>,
  name: string,
): AsyncIterable<Uint8Array> {
  if (!name.endsWith('.gz')) return file as AsyncIterable<Uint8Array>
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES })
  // The iterator over the last stream gets the error of either.
  return pipeline(file, gunzip, () => {}) as AsyncIterable<Uint8Array>
}

async function* readPieces(
  reader: OnlineRetailReader,
  chunks: AsyncIterable<Uint8Array>,
  encoding: IngestOptions['encoding'],
): AsyncGenerator<Piece> {
  const decoder = new TextDecoder(encoding, { fatal: true })
  const decode = (chunk?: Uint8Array): string => {
    try {
      return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true })
    } catch {
      throw new CsvError(
        `the text after row ${reader.rowsRead} is not UTF-8: try --encoding windows-1252`,
      )
    }
  }
  for await (const chunk of chunks) yield reader.push(decode(chunk))
  yield reader.push(decode())
  yield reader.end()
}
