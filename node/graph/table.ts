// The actor types as a worker thread gets them: code can't be sent to a thread, the URL of its
// module can.

import type { Behaviour } from '../../protocol/behaviour.ts'

/** The platform's own table. */
export const BEHAVIOUR_TABLE: string = new URL('../behaviours.ts', import.meta.url).href

export async function loadTable(url: string): Promise<Behaviour[]> {
  const module = (await import(url)) as { behaviours: () => Behaviour[] }
  return module.behaviours()
}
