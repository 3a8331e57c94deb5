// What a damaged store is refused with: where the damage is and the ways back. For whoever reads
// the log of a node that doesn't start. Source: PROTOCOL 3.16.

export interface DamagePlace {
  /** Path of the data file. */
  readonly file: string
  /** null: not to be told, or not in a shard's log. */
  readonly shard: number | null
  /** Offset of the first group that can't be read; null likewise. */
  readonly offset: number | null
}

/** The store holds less or other than what was committed. It is never served short. */
export class JournalDamage extends Error {
  override readonly name = 'JournalDamage'
  readonly place: DamagePlace

  constructor(what: string, place: DamagePlace) {
    super(what)
    this.place = place
  }
}

/** A row of the data file that isn't what was written. */
export function damagedRow(file: string, table: string, key: Uint8Array): JournalDamage {
  const hex = Buffer.from(key).toString('hex')
  return new JournalDamage(
    `${file}: table ${table}, row ${hex}: its checksum doesn't match. The log has what it was made ` +
      'from: stop this node, take the file away, and start it again: it is made anew',
    { file, shard: null, offset: null },
  )
}
