// The configuration as a turn of the system shard sees it: what is committed, and over it what the
// turns before it have decided and the log hasn't yet. A rule over several actors (one name for one
// of them, one owner always stays) holds for turns that follow each other at once, too. What was
// decided may come to nothing; then this turn does as well, for its entry is behind theirs. Source:
// PROTOCOL 3.6 step 5.

import type { ConfigurationView, SystemState } from '../../../protocol/behaviour.ts'
import type { Activation } from './activation.ts'

type Decided = Pick<Activation, 'behaviour' | 'key' | 'state'>

export class DecidedConfiguration implements ConfigurationView {
  readonly #committed: ConfigurationView
  /** By type, then by key. */
  readonly #decided = new Map<string, Map<string, Decided>>()

  constructor(committed: ConfigurationView, decided: Iterable<Decided>) {
    this.#committed = committed
    for (const one of decided) {
      if (one.key === null || one.state === null) continue
      const { type } = one.behaviour
      let ofType = this.#decided.get(type)
      if (!ofType) this.#decided.set(type, (ofType = new Map()))
      ofType.set(one.key, one)
    }
  }

  get<T>(type: string, key: string): { readonly value: T } | null {
    const decided = this.#decided.get(type)?.get(key)
    return decided ? shown<T>(decided) : this.#committed.get<T>(type, key)
  }

  find<T>(type: string, name: string): { readonly key: string; readonly value: T } | null {
    const ofType = this.#decided.get(type)
    for (const decided of ofType?.values() ?? []) {
      const found = shown<T>(decided)
      if (found && decided.behaviour.names?.(decided.state).includes(name)) return found
    }
    const found = this.#committed.find<T>(type, name)
    return found && !ofType?.has(found.key) ? found : null
  }

  *all<T>(type: string): Iterable<{ readonly key: string; readonly value: T }> {
    const ofType = this.#decided.get(type)
    for (const one of this.#committed.all<T>(type)) if (!ofType?.has(one.key)) yield one
    for (const decided of ofType?.values() ?? []) {
      const found = shown<T>(decided)
      if (found) yield found
    }
  }

  size(type: string): number {
    let size = this.#committed.size(type)
    for (const [key, decided] of this.#decided.get(type) ?? []) {
      const was = this.#committed.get(type, key) !== null
      const is = shown(decided) !== null
      size += Number(is) - Number(was)
    }
    return size
  }
}

function shown<T>({ state }: Decided): { readonly key: string; readonly value: T } | null {
  const { key, value, deleted } = state as SystemState<T>
  return deleted ? null : { key, value }
}
