// A reader thread's stand-in for tests: answers with the plan itself, hangs, dies or fails as the
// plan says.

import { parentPort } from 'node:worker_threads'
import type { FromReader, PlanAnswer, ToReader } from '../reader-messages.ts'

const port = parentPort!
const answer = (message: PlanAnswer): void =>
  port.postMessage({ ...message, isHeavy: false, isLong: false } satisfies FromReader)

port.on('message', ({ id, plan }: ToReader) => {
  const order = JSON.parse(plan) as string
  if (order === 'die') process.exit(3)
  if (order === 'throw') throw new Error('thrown in the thread')
  // Blocks like a statement that never comes back.
  if (order === 'hang') for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000)
  if (order === 'fail') return answer({ id, failure: 'it broke', us: 1 })
  if (order === 'refuse') {
    const errors = [{ code: 'INVALID_QUERY', message: 'no', details: { a: 1 } }]
    return answer({ id, errors, us: 1 })
  }
  return answer({ id, json: plan, us: 5 })
})
port.postMessage('ready' satisfies FromReader)
