// A reader thread's stand-in for tests: answers with the plan itself, hangs, dies or fails as the
// plan says.

import { parentPort } from 'node:worker_threads'
import type { FromReader, ToReader } from '../reader-messages.ts'

const port = parentPort!
const post = (message: FromReader): void => port.postMessage(message)

port.on('message', ({ id, plan }: ToReader) => {
  const order = JSON.parse(plan) as string
  if (order === 'die') process.exit(3)
  if (order === 'throw') throw new Error('thrown in the thread')
  // Blocks like a statement that never comes back.
  if (order === 'hang') for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000)
  if (order === 'fail') return post({ id, failure: 'it broke', us: 1 })
  if (order === 'refuse') {
    return post({
      id,
      errors: [{ code: 'INVALID_QUERY', message: 'no', details: { a: 1 } }],
      us: 1,
    })
  }
  return post({ id, json: plan, us: 5 })
})
