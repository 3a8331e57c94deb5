// The table of actor types that worker threads load in tests of the `system` shard.

import type { Behaviour } from '../../../protocol/behaviour.ts'
import { handbookBehaviour, vaultBehaviour } from '../../../cluster/feed/testing/handbook.ts'
import { notebookBehaviour } from '../../../cluster/feed/testing/notebook.ts'

export function behaviours(): Behaviour[] {
  return [
    notebookBehaviour({ fold: true, project: true }),
    handbookBehaviour(),
    vaultBehaviour(),
  ] as Behaviour[]
}
