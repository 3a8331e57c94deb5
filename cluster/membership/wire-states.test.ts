// What an incarnation says of its wire, and who is cut off by what all say.

import t from 'tap'
import fc from 'fast-check'
import { LIMITS } from '../../config/limits.ts'
import type { MemberRow, WireState } from '../../storage/control.ts'
import { cluster } from './testing/machine.ts'
import { CutOff, OwnWire } from './wire-states.ts'

const LOOK_MS = LIMITS.membership.membersReadEveryMs

function rows(wires: Readonly<Record<string, WireState | 'leaving'>>): readonly MemberRow[] {
  return Object.entries(wires).map(([member, wire]) => ({
    ...{ member, incarnation: member, beat: 1, address: '', version: '' },
    ...(wire === 'leaving' ? { state: 'leaving' } : { state: 'up', wire }),
  }))
}

/** Looks at the same rows for so long; who is cut off at the end. */
function watching() {
  const cutOff = new CutOff()
  const world = {
    nowMs: 0,
    for(ms: number, wires: Readonly<Record<string, WireState | 'leaving'>>): readonly string[] {
      let found: ReadonlySet<string> = new Set()
      for (const end = world.nowMs + ms; world.nowMs < end; world.nowMs += LOOK_MS) {
        found = cutOff.saw(rows(wires), world.nowMs)
      }
      return [...found]
    },
  }
  return world
}

t.test('a loss is told when it lasts, and so is its end', async (t) => {
  const own = new OwnWire(true)
  t.equal(own.look(false, 0), 'up')
  t.equal(own.look(false, LIMITS.membership.wireDownMs - 1), 'up')
  t.equal(own.look(true, LIMITS.membership.wireDownMs), 'up', 'a loss that has ended')
  t.equal(own.look(false, 10_000), 'up')
  t.equal(own.look(false, 10_000 + LIMITS.membership.wireDownMs), 'down')
  t.equal(own.look(true, 20_000), 'down')
  t.equal(own.look(true, 20_000 + LIMITS.membership.wireUpMs - 1), 'down')
  t.equal(own.look(false, 25_000), 'down')
  t.equal(own.look(true, 30_000), 'down', 'it counts afresh')
  t.equal(own.look(true, 30_000 + LIMITS.membership.wireUpMs), 'up')
})

t.test('who begins without a wire says so at once, and at once that there is one', async (t) => {
  const own = new OwnWire(false)
  t.same([own.said, own.wasUp], ['down', false])
  t.equal(own.look(false, 60_000), 'down')
  t.equal(own.look(true, 60_001), 'up')
  t.equal(own.wasUp, true)
})

t.test('cut off: down there, up elsewhere, each for so long', async (t) => {
  const { wireApartMs: ms } = LIMITS.membership
  const world = watching()
  t.same(world.for(ms, { a: 'down', b: 'up' }), [])
  t.same(world.for(LOOK_MS, { a: 'down', b: 'up' }), ['a'])
  t.same(world.for(LOOK_MS, { a: 'up', b: 'up' }), [], 'it takes part again at once')
  t.same(world.for(60_000, { a: 'down', b: 'down' }), [], 'down for all')
  t.same(world.for(ms, { a: 'up', b: 'down' }), [], 'the first one is back')
  t.same(world.for(ms, { a: 'up', b: 'up' }), [])
  t.same(world.for(60_000, { a: 'down', b: 'leaving' }), [], 'who leaves takes nothing')
})

t.test('reads that pause prove nothing of what was up meanwhile', async (t) => {
  const world = watching()
  world.for(LIMITS.membership.wireApartMs - LOOK_MS, { a: 'down', b: 'up' })
  world.nowMs += 60_000
  t.same(world.for(LIMITS.membership.wireApartMs, { a: 'down', b: 'up' }), [])
  t.same(world.for(LOOK_MS, { a: 'down', b: 'up' }), ['a'])
})

t.test('an outage for all cuts nobody off, whoever notices it when, and its end', async () => {
  const within = fc.integer({ min: 0, max: LIMITS.membership.wireApartMs - LOOK_MS })
  const member = fc.record({ downMs: within, upMs: within })
  const outage = fc.array(member, { minLength: 2, maxLength: 5 })
  const lasts = fc.integer({ min: LIMITS.membership.wireApartMs, max: 120_000 })
  fc.assert(
    fc.property(outage, lasts, (members, lastsMs) => {
      const cutOff = new CutOff()
      for (let nowMs = 0; nowMs < lastsMs + 2 * LIMITS.membership.wireApartMs; nowMs += LOOK_MS) {
        const wires = members.map(({ downMs, upMs }, i): [string, WireState] => {
          const isDown = nowMs >= downMs && nowMs < lastsMs + upMs
          return [`m${i}`, isDown ? 'down' : 'up']
        })
        if (cutOff.saw(rows(Object.fromEntries(wires)), nowMs).size > 0) return false
      }
      return true
    }),
    { numRuns: Number(process.env['FC_RUNS'] ?? 100) },
  )
})

t.test('the row says what the incarnation says, however often its statement is lost', async (t) => {
  const { time, state, start } = cluster()
  const one = await start('a')
  const said = (): WireState | undefined => state.members.get('a')!.wire
  t.equal(said(), 'up')
  one.isWireUp = false
  await time.advance(LIMITS.membership.wireDownMs - LOOK_MS)
  t.equal(said(), 'up')
  one.fate = (statement) => (statement === 'wire' ? 'lost' : 'heard')
  await time.advance(LIMITS.membership.wireDownMs)
  t.same([said(), one.membership.wire.said], ['up', 'down'])
  one.fate = null
  await time.advance(3 * LOOK_MS)
  t.equal(said(), 'down')
  const before = one.calls.filter((call) => call === 'wire').length
  await time.advance(5_000)
  t.equal(one.calls.filter((call) => call === 'wire').length, before, 'once it is there, no more')
  one.isWireUp = true
  await time.advance(LIMITS.membership.wireUpMs + 3 * LOOK_MS)
  t.equal(said(), 'up')
  one.membership.close()
})

t.test('an incarnation that joins without a wire says so in its first row', async (t) => {
  const { state, machine } = cluster()
  const one = machine('a')
  one.isWireUp = false
  await one.join()
  t.equal(state.members.get('a')!.wire, 'down')
  one.membership.close()
})
