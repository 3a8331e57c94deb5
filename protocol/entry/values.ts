// JSON values in a binary form of their own, for what is written and read with every order: what
// each byte says. Two things make it faster than a text: numbers are not turned into digits, and
// the strings of an entry lie side by side, joined and written at once. A value says where it ends,
// so whoever doesn't know the shape of a record passes over it. Source: PROTOCOL 3.0.
//
//     mark | sizes of the three parts | structure | strings in Latin-1 | other strings in UTF-16

/** Deepest nesting that is written or read: bodies have JSON_DEPTH_MAX, entries wrap them. */
export const VALUE_DEPTH_MAX = 256

/** The first byte of all that is written: no text of JSON begins so. */
export const MARK = 0xe2

/**
 * What a byte says that stands for a value. Below TEXT_MAX it is the length of a string, below
 * twice that a number. The others are named, and none may ever mean something else.
 */
export const TEXT_MAX = 0x40
export const NULL = 0x80
export const FALSE = 0x81
export const TRUE = 0x82
export const TEXT = 0x83
/** A string that has other units than those of Latin-1; only entries with such a one have it. */
export const WIDE_TEXT = 0x84
export const LIST = 0x85
export const MAP = 0x86
export const INTEGER = 0x87
export const NEGATIVE = 0x88
/** Hundredths: what amounts are. */
export const CENTS = 0x89
export const NEGATIVE_CENTS = 0x8a
export const DOUBLE = 0x8b
/** Members by position: which of them there are, as bits, then those (record-shape.ts). */
export const SHAPED = 0x8c
/** Lists up to 15 have their length in the byte. */
export const SHORT_LIST = 0x90
export const SHORT_LIST_MAX = 0x10

/** Bit of a member mask: a map of members without a position comes behind the others. */
export const REST = 1
