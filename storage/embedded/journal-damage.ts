// What a damaged store is refused with: where the damage is and the ways back. It stands between
// the checks of a journal and whoever reads the log of a node that doesn't start.
// Source: PROTOCOL 3.16.

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

/** A damaged shard log: with what was found and how to go on. `good`: last offset before it. */
export function logDamage(what: string, file: string, shard: number, good: number): JournalDamage {
  return new JournalDamage(
    `${file}: shard ${shard}, offset ${good + 1}: ${what}. ` +
      'Nothing was changed. Ways back: restore the data directory from a backup; or give up what ' +
      `this shard holds behind offset ${good} with --accept-loss ${shard}:${good}`,
    { file, shard, offset: good + 1 },
  )
}
