// The table of actor types that worker threads load in tests: notebooks only.

import type { Behaviour } from '../../../protocol/behaviour.ts'
import { notebookBehaviour } from '../../../cluster/feed/testing/notebook.ts'

export function behaviours(): Behaviour[] {
  return [notebookBehaviour({ fold: true, project: true })]
}
