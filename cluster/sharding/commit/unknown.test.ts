// Appends whose outcome nobody knows: asked for, sent again, and after three failures made false
// for ever by a new epoch (PROTOCOL 3.2).

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import type { Group, Tenure } from '../../../storage/journal.ts'
import type { LateAppend } from '../../../storage/memory/journal.ts'
import { settle } from '../../testing/harness.ts'
import { Scene, code, data, latch } from '../testing/scene.ts'

interface Stage {
  readonly scene: Scene
  readonly id: string
  readonly sent: Group[]
  readonly tell: (token: string) => Promise<Awaited<ReturnType<Scene['tell']>>>
}

/** A shard whose appends fail from now on, as the given rule says. */
async function stage(
  rule: (nth: number, group: Group) => 'unknown' | LateAppend | null,
  reclaim?: (shard: number) => Promise<Tenure | null>,
): Promise<Stage> {
  const scene = new Scene({ hooks: {}, ...(reclaim ? { reclaim } : null) })
  await scene.run(scene.shard.claim(reclaim ? { epoch: 1, segment: 1 } : undefined))
  const id = await scene.made()
  const sent: Group[] = []
  scene.journal.hooks.beforeAppend = (group) => {
    sent.push(group)
    return rule(sent.length, group)
  }
  const tell: Stage['tell'] = (token) =>
    scene.tell(scene.envelope(id, { say: [['append', { token }]], key: token }))
  return { scene, id, sent, tell }
}

t.test('three failures of the same bytes: another epoch, and what is not in is said', async (t) => {
  const land = latch()
  const { scene, id, sent, tell } = await stage((nth) =>
    nth === 1 ? { outcome: 'unknown', when: land.opened } : nth <= 3 ? 'unknown' : null,
  )
  const { epoch } = scene.shard
  const lost = tell('lost')
  await settle()
  const behind = tell('behind')
  t.equal(code(await scene.run(lost)), 'OUTCOME_UNKNOWN')
  t.equal(code(await scene.run(behind)), 'moved', 'what was built on it begins again')
  t.equal(sent.length, 3)
  t.equal(new Set(sent.map(({ commitId }) => commitId)).size, 1, 'the same bytes each time')
  t.equal(scene.shard.epoch, epoch + 1)
  land.open()
  await settle()
  t.same(await scene.tokens(id), ['first'], 'the old bytes never land')
  t.equal(data(await scene.run(tell('lost'))), 2, 'a repeat with its key takes effect')
  t.equal(data(await scene.run(tell('behind'))), 3)
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  t.equal(await scene.journal.derived.consumer(0, 'flush'), 3, 'it flushes in the new epoch')
  t.same(scene.steppedDown, [])
})

t.test('it was in after all: its answers leave', async (t) => {
  const land = latch()
  const { scene, id, tell } = await stage((nth) => {
    if (nth === 1) return { outcome: 'unknown', when: land.opened }
    return nth <= 3 ? 'unknown' : null
  })
  // It lands after it was last asked for, and before the epoch is raised.
  const { log } = scene.shard.context.journal
  const claim = log.claim.bind(log)
  scene.journal.log.claim = async (shard, tenure) => {
    land.open()
    await settle()
    return claim(shard, tenure)
  }
  const late = tell('late')
  await settle()
  const behind = tell('behind')
  t.equal(data(await scene.run(late)), 2)
  t.equal(data(await scene.run(behind)), 3)
  t.same(await scene.tokens(id), ['first', 'late', 'behind'])
  t.equal(scene.shard.epoch, 2)
})

t.test('its answers leave when that is known, whether anything comes behind or not', async (t) => {
  const { scene, tell } = await stage(() => null)
  scene.journal.hooks.afterAppend = () => {
    scene.journal.hooks.afterAppend = undefined
    return 'unknown'
  }
  t.equal(data(await scene.run(tell('alone'), 10, LIMITS.sharding.unknownOutcomeMs)), 2)
})

t.test('refused at once: nothing of it can be in', async (t) => {
  const { scene, tell } = await stage(() => null)
  await scene.journal.log.claim(0)
  t.same(await scene.run(tell('x')), { outcome: 'moved', shard: 0 })
  t.equal(scene.shard.state, 'stopped')
})

t.test('refused at once behind one that was unknown: nothing of it can be in either', async (t) => {
  const { scene, tell } = await stage((nth) => (nth === 1 ? 'unknown' : null))
  t.equal(code(await scene.run(tell('a'))), 'success')
  await scene.journal.log.claim(0)
  t.same(await scene.run(tell('b')), { outcome: 'moved', shard: 0 })
})

t.test('somebody else has it: the callers are told to ask there', async (t) => {
  for (const how of ['row', 'log', 'fence'] as const) {
    let claims = 0
    const { scene, tell } = await stage(
      () => 'unknown',
      () => {
        claims++
        return Promise.resolve(how === 'row' ? null : { epoch: 2, segment: 1 })
      },
    )
    if (how !== 'row') {
      const { log } = scene.journal
      const newer = log.claim.bind(log)
      if (how === 'fence') await newer(0)
      else {
        log.claim = async () => {
          const { LostTenure } = await import('../../../storage/journal.ts')
          throw new LostTenure(0, 2)
        }
      }
    }
    const moved = { outcome: 'moved', shard: 0, taken: true }
    t.same(await scene.run(tell('x')), moved, 'the first copy may have won, or win yet')
    t.equal(claims, how === 'fence' ? 0 : 1)
    t.equal(scene.shard.state, 'stopped')
    t.equal(scene.steppedDown.length, 1)
  }
})

t.test(
  'while the rows can not be asked, it is tried again, and nobody is told "failed"',
  async (t) => {
    let isAway = true
    const { scene, tell } = await stage(
      (nth) => (nth <= 3 ? 'unknown' : null),
      () =>
        isAway ? Promise.reject(new Error('away')) : Promise.resolve({ epoch: 2, segment: 1 }),
    )
    const asked = tell('x')
    const began = scene.clock.monotonicMs()
    t.equal(code(await scene.run(asked)), 'OUTCOME_UNKNOWN')
    t.ok(scene.clock.monotonicMs() - began >= LIMITS.sharding.unknownOutcomeMs)
    const next = tell('y')
    await scene.clock.advance(3_000)
    isAway = false
    await scene.clock.advance(3_000)
    t.equal(code(await next), 'moved')
    t.equal(data(await scene.run(tell('x'))), 2)
  },
)

t.test('a log that is not as its owner left it stops the shard', async (t) => {
  const { scene, tell } = await stage(() => 'unknown')
  const asked = tell('x')
  scene.journal.state.shards.get(0)!.head += 7
  t.equal(code(await scene.run(asked)), 'moved')
  t.equal(scene.shard.state, 'stopped')
  t.ok(scene.logged.some((line) => line.includes('not as its owner left it')))
})

t.test('a tenure that is over looks at nothing that the next one has written', async (t) => {
  const claiming = latch()
  const { scene, tell } = await stage(
    () => 'unknown',
    async () => {
      await claiming.opened
      return { epoch: 2, segment: 1 }
    },
  )
  void tell('x')
  await scene.clock.advance(5_000)
  const { shard } = scene
  shard.stepDown('a new tenure begins')
  // It has the epoch that this one has asked for, and has gone on.
  await scene.journal.log.claim(0, { epoch: 2, segment: 1 })
  scene.journal.state.shards.get(0)!.head += 7
  claiming.open()
  await scene.clock.advance(5_000)
  t.same(scene.steppedDown, ['a new tenure begins'], 'and that is all that is told of it')
  t.notOk(scene.logged.some((line) => line.includes('not as its owner left it')))
})

t.test('a tenure that ends while it looks for its group says nothing of the log', async (t) => {
  const land = latch()
  const { scene, tell } = await stage((nth) => {
    if (nth === 1) return { outcome: 'unknown', when: land.opened }
    return nth <= 3 ? 'unknown' : null
  })
  const { log } = scene.journal
  const claim = log.claim.bind(log)
  log.claim = async (shard, tenure) => {
    land.open()
    await settle()
    return claim(shard, tenure)
  }
  const trimmed = latch()
  let isReading = false
  log.read = () => {
    isReading = true
    return trimmed.opened.then(() => [])
  }
  void tell('x')
  await scene.clock.advance(5_000)
  t.ok(isReading)
  scene.shard.stepDown('a new tenure begins')
  // That one has gone on, and the row is trimmed.
  trimmed.open()
  await scene.clock.advance(5_000)
  t.same(scene.steppedDown, ['a new tenure begins'])
  t.notOk(scene.logged.some((line) => line.includes('not as its owner left it')))
  t.notOk(scene.logged.some((line) => line.includes('an outcome stays unknown')))
})

t.test('rows under way while the epoch is raised are written in the new one', async (t) => {
  const write = latch()
  const { scene, tell } = await stage((nth) => (nth > 1 && nth <= 4 ? 'unknown' : null))
  scene.journal.hooks.beforeWrite = () => write.opened.then(() => null)
  const { log } = scene.journal
  const claim = log.claim.bind(log)
  log.claim = async (shard, tenure) => {
    const claimed = await claim(shard, tenure)
    write.open()
    await settle()
    return claimed
  }
  t.equal(code(await scene.run(tell('a'))), 'success')
  t.equal(code(await scene.run(tell('b'))), 'OUTCOME_UNKNOWN')
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 3)
  t.equal(await scene.journal.derived.consumer(0, 'flush'), 2)
  t.same(scene.steppedDown, [])
})
