// One entry of an inbox stream: what a member has for another in one tick, as text. Source:
// PROTOCOL 3.6 "Wire".
//
// `v` is the number of the format of `b`, and `h` names the sender and the copies inside: these two
// stay as they are in every format, so that a member that can't read a newer body can still say so.

import type { Envelope, WireReply } from '../../protocol/message.ts'
import type { Notice } from '../wire.ts'

/** The newest of the body that is read here; one that is higher was written by a newer Kontor. */
export const WIRE_FORMAT = 5

/**
 * The oldest format in which an envelope says all that it means. An owner that knows only format 1
 * counts messages by their place in the envelope, and of a relayed effect takes the first alone;
 * one that knows format 2 shows a `query` all there is, whoever asks; one that knows format 3 runs
 * what is refused; one that knows format 4 knows no attributes, and shows what they would open to
 * nobody.
 */
export function formatOf(envelope: Envelope): number {
  const { places, relay, messages, graphAces, graphAttributes, refused } = envelope
  if (graphAttributes !== undefined) return 5
  if (refused !== undefined) return 4
  if (graphAces !== undefined) return 3
  return places !== undefined || (relay !== undefined && messages.length > 1) ? 2 : 1
}

export type Item =
  | {
      readonly kind: 'parcel'
      /** Number of the copy: its answer is known by it. */
      readonly copy: number
      readonly shard: number
      readonly epoch: number
      readonly envelope: Envelope
    }
  | { readonly kind: 'reply'; readonly copy: number; readonly reply: WireReply }
  | { readonly kind: 'notice'; readonly notice: Notice }

type Packed =
  | readonly ['p', number, number, number, Envelope]
  | readonly ['r', number, WireReply]
  | readonly ['n', Notice]

export type ReadEntry =
  /** Made by its reader, so that the stream is there. */
  | { readonly state: 'empty' }
  | { readonly state: 'read'; readonly from: string; readonly items: readonly Item[] }
  | {
      readonly state: 'newer'
      readonly format: number
      readonly from: string
      /** Copies inside that can be refused. */
      readonly copies: readonly number[]
    }
  | { readonly state: 'broken'; readonly why: string }

/** One item as it stands in a body. */
export function packItem(item: Item): string {
  return JSON.stringify(packed(item))
}

function packed(item: Item): Packed {
  switch (item.kind) {
    case 'parcel':
      return ['p', item.copy, item.shard, item.epoch, item.envelope]
    case 'reply':
      return ['r', item.copy, item.reply]
    case 'notice':
      return ['n', item.notice]
  }
}

/** Fields of an entry of these packed items. */
export function entryFields(
  from: string,
  copies: readonly number[],
  items: readonly string[],
  format: number,
): string[] {
  const header = JSON.stringify({ from, copies })
  return ['v', String(format), 'h', header, 'b', `[${items.join(',')}]`]
}

/** Fields of the entry that makes a stream. */
export const EMPTY_ENTRY = ['v', '0'] as const

/** Holds nothing, and needs no seal. */
export function isEmptyEntry([name, value]: readonly string[]): boolean {
  return name === 'v' && Number(value) === 0
}

/** Never throws: what others have written is judged, not trusted. */
export function readEntry(fields: readonly string[]): ReadEntry {
  const byName = new Map<string, string>()
  for (let i = 0; i + 1 < fields.length; i += 2) byName.set(fields[i]!, fields[i + 1]!)
  const format = Number(byName.get('v'))
  if (format === 0) return { state: 'empty' }
  try {
    const { from, copies } = headerOf(byName.get('h'))
    if (format > WIRE_FORMAT) return { state: 'newer', format, from, copies }
    const body = JSON.parse(byName.get('b') ?? '') as readonly Packed[]
    return { state: 'read', from, items: body.flatMap(unpacked) }
  } catch (error) {
    return { state: 'broken', why: (error as Error).message }
  }
}

function headerOf(text = ''): Header {
  const header = JSON.parse(text) as Header
  const { from, copies } = header
  if (typeof from !== 'string' || !Array.isArray(copies)) throw new Error('no header')
  return header
}

/** Who wrote an entry, in every format; null: it doesn't say. */
export function senderOf(fields: readonly string[]): string | null {
  try {
    return headerOf(fields[fields.indexOf('h') + 1]).from
  } catch {
    return null
  }
}

interface Header {
  readonly from: string
  readonly copies: readonly number[]
}

/** Nothing of a kind that this version doesn't know: a hint more, that nobody has to take. */
function unpacked(item: Packed): Item | [] {
  switch (item[0]) {
    case 'p':
      return { kind: 'parcel', copy: item[1], shard: item[2], epoch: item[3], envelope: item[4] }
    case 'r':
      return { kind: 'reply', copy: item[1], reply: item[2] }
    case 'n':
      return { kind: 'notice', notice: item[1] }
    default:
      return []
  }
}
