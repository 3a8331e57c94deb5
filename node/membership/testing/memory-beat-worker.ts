// A beat thread on control rows in memory: its own row is there from the first incarnation on. It
// tells each beat's number as a line of the log, and stops answering, dies or declares itself dead
// by the name of the member.

import { parentPort, workerData } from 'node:worker_threads'
import type { MemberChange, MemberCondition } from '../../../storage/control.ts'
import { MemoryControl, newStatementState } from '../../../storage/memory/statements.ts'
import { BeatService, threadClock } from '../beat-service.ts'
import type { BeatWorkerData, ToBeatWorker } from '../beat-messages.ts'

const port = parentPort!
const control = new MemoryControl(newStatementState(1))
let attempts = 0

port.on('message', (message: ToBeatWorker) => {
  if (message.kind !== 'start') return
  const { member, incarnation } = message.own
  const row = { incarnation, state: 'up' as const, beat: 0, address: '', version: '1' }
  void control
    .insertMember({ member, ...row })
    .then((outcome) => (outcome === 'applied' ? outcome : update(member, row)))
})

async function update(member: string, to: MemberChange) {
  const { incarnation } = (await control.member(member))!
  return control.updateMember(member, to, { incarnation })
}

new BeatService({
  port,
  ticks: (workerData as BeatWorkerData).ticks,
  clock: threadClock(),
  async connect(log) {
    if (++attempts === 1) throw new Error('not yet')
    return {
      control: {
        member: (member) => control.member(member),
        async updateMember(member: string, to: MemberChange, where: MemberCondition) {
          if (member === 'dies' && to.beat === 3) process.exit(1)
          if (member === 'dead' && to.beat === 3) await update(member, { state: 'dead' })
          if (member === 'unheard' && to.beat === 3) {
            await control.updateMember(member, to, where)
            return 'unknown'
          }
          log.debug({ beat: to.beat }, 'beat')
          return control.updateMember(member, to, where)
        },
      },
      close: () => Promise.resolve(),
    }
  },
}).serve()
