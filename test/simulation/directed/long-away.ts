// A member is stopped while configuration is deleted and the log of `system` is trimmed above what
// it has: what it reads when it goes on is an image, which tells it what is gone by leaving it out
// (PROTOCOL 3.0 "The system shard").

import type { SimulatedMember } from '../world.ts'
import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  const [a, b] = await stage.start('a', 'b')
  const owner = stage.serves(a!, -1) ? a! : b!
  const other = owner === a ? b! : a!
  const change = async (to: SimulatedMember, type: string, address: string, token: string) => {
    const messages = [{ type, body: { token } }]
    const operation = stage.clients.begin({ client: 'stage', type: 'flag', address, messages })
    await stage.clients.over(to, operation)
    if (operation.outcome !== 'ok') throw new Error(`not answered: ${operation.why}`)
    await stage.wait(1)
  }
  await change(owner, 'put', 'flag-0', 'gone')
  await stage.until(
    'both have it',
    () => [...other.member.system.withPrefix('flag', '')].length > 0,
  )
  other.process.pause()
  await change(owner, 'drop', 'flag-0', '')
  for (let i = 0; i < 30; i++) await change(owner, 'put', 'flag-1', `t${i}`)
  await stage.until(
    'the log is trimmed',
    () => (owner.member.shards.get(-1)?.kept.trimmed ?? 0) > 2,
  )
  // Nor does it hear of what it was told meanwhile.
  stage.world.redis.flush()
  other.process.resume()
  const { system } = owner.member
  await stage.until('it has read the image', () => other.member.system.offset >= system.offset)
}
