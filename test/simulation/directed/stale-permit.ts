// What a member lets through by configuration that it has not yet heard to be withdrawn, the owner
// of the configuration refuses by its own (PROTOCOL 3.0 "Who may change configuration").

import { SYSTEM_SHARD } from '../../../protocol/ids.ts'
import type { SimulatedMember } from '../world.ts'
import type { Stage } from './stage.ts'

const allowed = ({ member }: SimulatedMember): unknown =>
  member.system.get('flag', 'allowed')?.value

export async function play(stage: Stage): Promise<void> {
  const all = await stage.start('a', 'b', 'c')
  const owner = stage.ownerOf(SYSTEM_SHARD)!
  const stale = all.find((one) => one !== owner)!
  const put = async (over: SimulatedMember, address: string, body: object): Promise<string> => {
    const asked = { client: 'stage', type: 'flag', address, messages: [{ type: 'put', body }] }
    const operation = stage.clients.begin(asked, { preview: false })
    await stage.clients.over(over, operation, 1_500)
    return `${operation.outcome} ${operation.why ?? ''}`
  }
  await put(owner, 'allowed', { token: 'yes' })
  await stage.until('all know', () => all.every((one) => allowed(one) === 'yes'))
  // The log is not read any more, and what is pushed does not come.
  const reads = stage.hold(stale.process, /^rows -1\//)
  stage.world.redis.cut(stale.process, { out: false, back: true })
  await put(owner, 'allowed', { token: 'no' })
  if (allowed(stale) !== 'yes') throw new Error('it has heard of it')
  await put(stale, 'flag-0', { token: 'withdrawn', needs: 'allowed' })
  await stage.wait(1_000)
  const { value = '' } = owner.member.system.get<string>('flag', 'flag-0') ?? {}
  reads.release()
  stage.world.redis.heal(stale.process)
  if (value === 'withdrawn') throw new Error('what had been withdrawn was done')
}
