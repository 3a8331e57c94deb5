// The data file as pages, read without LMDB: whether it is as long as its meta pages say, and
// whether every page that a tree leads to is there. LMDB itself notices nothing: a file cut to half
// opens and iterates without an error, or ends the process with a bus error. The layout is lmdb
// 3.5's (data version 2, little-endian). Source: PROTOCOL 3.16.

import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import { JournalDamage } from '../damage.ts'
import { placeOfLogKey, LOG_KEY_BYTES } from './layout.ts'

const PAGE_HEADER_BYTES = 24
const META_BYTES = 152
const MAGIC = 0xbeefc0de
const DATA_VERSION = 2
const BRANCH = 0x01
const LEAF = 0x02
const OVERFLOW = 0x04
const META = 0x08
const BIG_DATA = 0x01
const SUB_DATA = 0x02
/** Root of an empty tree. */
const NO_PAGE = 0xffff_ffff_ffff_ffffn
const FREE_TREE = 'free pages'
const MAIN_TREE = 'tables'

/** A page that a tree leads to and that isn't there, or isn't what it should be. */
export interface PageFinding {
  readonly what: string
  readonly table: string
  /** Place in the log where the page belongs, when it is the log's and that much is known. */
  readonly log: { readonly shard: number; readonly offset: number } | null
}

interface Meta {
  readonly pageBytes: number
  readonly lastPage: number
  readonly transaction: bigint
  readonly freeRoot: bigint
  readonly mainRoot: bigint
}

/**
 * Looks at the file before LMDB does. False when there is none, or an empty one. Throws
 * JournalDamage when it is no journal's, or when something that is in use lies behind its end.
 */
export function checkDataFile(file: string): boolean {
  if (!existsSync(file)) return false
  const pages = new PageFile(file)
  try {
    if (pages.bytes === 0) return false
    const meta = pages.meta()
    const wanted = (meta.lastPage + 1) * meta.pageBytes
    if (pages.bytes >= wanted) return true
    // A file may rightly be shorter: pages at its end that were freed before they were written.
    const findings: PageFinding[] = []
    pages.walk(meta, (finding) => findings.push(finding))
    if (findings.length === 0) return true
    throw cutDamage(file, findings, `ends at byte ${pages.bytes} and should end at ${wanted}`)
  } finally {
    pages.close()
  }
}

/** Follows every tree through the whole file and reports pages that are missing or not right. */
export function walkDataFile(file: string, report: (finding: PageFinding) => void): void {
  const pages = new PageFile(file)
  try {
    pages.walk(pages.meta(), report)
  } finally {
    pages.close()
  }
}

function cutDamage(file: string, findings: readonly PageFinding[], what: string): JournalDamage {
  const inLog = findings.filter((finding) => finding.log !== null)
  inLog.sort((a, b) => a.log!.shard - b.log!.shard || a.log!.offset - b.log!.offset)
  const first = inLog[0]?.log ?? null
  const tables = [...new Set(findings.map(({ table }) => table))].join("', '")
  // Without the tables' own tree nothing can be reached.
  const where =
    first === null
      ? `so every shard is lost from offset 1 on, or what was derived from it ('${tables}')`
      : `the first of the log at shard ${first.shard}, offset ${first.offset}`
  return new JournalDamage(
    `${file}: ${what}: ${findings.length} places in use are missing, ${where}. ` +
      'Nothing was changed. Way back: restore the data directory from a backup',
    { file, shard: first?.shard ?? null, offset: first?.offset ?? null },
  )
}

class PageFile {
  bytes: number
  readonly #file: string
  readonly #fd: number
  #pageBytes = 0

  constructor(file: string) {
    this.#file = file
    this.#fd = openSync(file, 'r')
    this.bytes = fstatSync(this.#fd).size
  }

  close(): void {
    closeSync(this.#fd)
  }

  #damage(what: string): JournalDamage {
    return new JournalDamage(
      `${this.#file}: ${what}: no shard can be read, from offset 1 on. Nothing was changed. Way ` +
        'back: restore the data directory from a backup',
      { file: this.#file, shard: null, offset: null },
    )
  }

  #read(at: number, bytes: number): Buffer | null {
    const buffer = Buffer.allocUnsafe(bytes)
    return readSync(this.#fd, buffer, 0, bytes, at) === bytes ? buffer : null
  }

  /** The newer of the two meta pages. */
  meta(): Meta {
    const first = this.#metaAt(0)
    const second = this.#metaAt(first.pageBytes)
    const newest = second.transaction > first.transaction ? second : first
    this.#pageBytes = newest.pageBytes
    // Only now: another process may be appending, and writes its pages before it says so.
    this.bytes = fstatSync(this.#fd).size
    return newest
  }

  #metaAt(at: number): Meta {
    const page = this.#read(at, PAGE_HEADER_BYTES + META_BYTES)
    if (page === null) throw this.#damage(`ends at byte ${this.bytes}, within its meta pages`)
    const meta = page.subarray(PAGE_HEADER_BYTES)
    if ((page.readUInt16LE(18) & META) === 0 || meta.readUInt32LE(0) !== MAGIC) {
      throw this.#damage(`at byte ${at} there is no meta page of LMDB`)
    }
    if (meta.readUInt32LE(4) !== DATA_VERSION) {
      throw this.#damage(`its format of LMDB is ${meta.readUInt32LE(4)}, not ${DATA_VERSION}`)
    }
    return {
      pageBytes: meta.readUInt32LE(24),
      freeRoot: meta.readBigUInt64LE(64),
      mainRoot: meta.readBigUInt64LE(112),
      lastPage: Number(meta.readBigUInt64LE(120)),
      transaction: meta.readBigUInt64LE(128),
    }
  }

  walk(meta: Meta, report: (finding: PageFinding) => void): void {
    this.#pageBytes = meta.pageBytes
    this.#walkTree({ table: FREE_TREE, page: meta.freeRoot, from: null }, report)
    this.#walkTree({ table: MAIN_TREE, page: meta.mainRoot, from: null }, report)
  }

  /** `from`: the lowest key that the page may hold. */
  #walkTree(
    place: { table: string; page: bigint; from: Buffer | null },
    report: (finding: PageFinding) => void,
  ): void {
    const { table, from } = place
    if (place.page === NO_PAGE) return
    const found = this.#page(place.page)
    if (typeof found === 'string') {
      report({ what: found, table, log: logPlace(table, from) })
      return
    }
    const flags = found.readUInt16LE(18)
    const count = found.readUInt16LE(20) >>> 1
    for (let i = 0; i < count; i++) {
      const node = PAGE_HEADER_BYTES + found.readUInt16LE(PAGE_HEADER_BYTES + 2 * i)
      if (node + 8 > found.length) {
        report({ what: 'a page whose nodes lie outside it', table, log: logPlace(table, from) })
        return
      }
      const keyBytes = found.readUInt16LE(node + 6)
      const key = found.subarray(node + 8, node + 8 + keyBytes)
      if ((flags & BRANCH) !== 0) {
        const page = BigInt(found.readUIntLE(node, 6))
        this.#walkTree({ table, page, from: i === 0 ? from : Buffer.from(key) }, report)
      } else {
        this.#walkNode({ table, page: found, node, key }, report)
      }
    }
  }

  /** What a leaf's node leads to: another tree, or a value in pages of its own. */
  #walkNode(
    place: { table: string; page: Buffer; node: number; key: Buffer },
    report: (finding: PageFinding) => void,
  ): void {
    const { table, page, node, key } = place
    const flags = page.readUInt16LE(node + 4)
    const data = node + 8 + key.length
    if ((flags & SUB_DATA) !== 0 && table === MAIN_TREE) {
      const name = key.toString('latin1').replace(/\0.*$/s, '')
      this.#walkTree({ table: name, page: page.readBigUInt64LE(data + 40), from: null }, report)
    } else if ((flags & BIG_DATA) !== 0) {
      const first = page.readBigUInt64LE(data)
      const last = first + page.readBigUInt64LE(data + 16) - 1n
      const found = this.#page(first)
      const end = this.#hasPage(last) ? null : `page ${last} lies behind the end of the file`
      const what = typeof found === 'string' ? found : end
      if (what !== null) report({ what, table, log: logPlace(table, key) })
    }
  }

  #hasPage(page: bigint): boolean {
    return (page + 1n) * BigInt(this.#pageBytes) <= BigInt(this.bytes)
  }

  /** A page of a tree or the first of a large value; or what is wrong with it. */
  #page(page: bigint): Buffer | string {
    if (!this.#hasPage(page)) return `page ${page} lies behind the end of the file`
    const found = this.#read(Number(page) * this.#pageBytes, this.#pageBytes)
    if (found === null) return `page ${page} can't be read`
    if (found.readBigUInt64LE(0) !== page) return `page ${page} calls itself another`
    const kind = found.readUInt16LE(18) & (BRANCH | LEAF | OVERFLOW)
    const isOne = kind === BRANCH || kind === LEAF || kind === OVERFLOW
    return isOne ? found : `page ${page} is of no kind`
  }
}

/** Where in the log a key is; what has no key before it is the log's beginning. */
function logPlace(table: string, key: Buffer | null): PageFinding['log'] {
  if (table !== 'log') return null
  return key?.length === LOG_KEY_BYTES ? placeOfLogKey(key) : { shard: SYSTEM_SHARD, offset: 1 }
}
