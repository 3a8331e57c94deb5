// Bounds stand where their owners are: a group of config/limits.ts has a folder's name, and code
// names the bounds of its own room and of rooms before it, as it imports (ARCHITECTURE 9).

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { LIMITS } from '../config/limits.ts'

const ROOT = join(import.meta.dirname, '..')
/** Rooms in the order of the data, each with those whose bounds it may name besides its own. */
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  protocol: [],
  commerce: ['protocol'],
  storage: ['protocol'],
  cluster: ['protocol', 'storage'],
  node: ['protocol', 'commerce', 'storage', 'cluster'],
}
const TEST = /\.test\.ts$|\/(testing|conformance)\//

/** The lowest room that is, or has, a folder of the group's name. */
function roomOf(group: string): string | undefined {
  const folder = group.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  return Object.keys(ROOMS).find((room) => room === folder || existsSync(join(ROOT, room, folder)))
}

t.test('a group of bounds is named as a folder', async (t) => {
  const homeless = Object.keys(LIMITS).filter((group) => roomOf(group) === undefined)
  t.strictSame(homeless, [])
})

t.test('a bound is named by its room and by those after it', async (t) => {
  const wrong: string[] = []
  let uses = 0
  for (const [room, before] of Object.entries(ROOMS)) {
    for (const name of readdirSync(join(ROOT, room), { recursive: true, encoding: 'utf8' })) {
      const path = `${room}/${name}`
      if (!path.endsWith('.ts') || TEST.test(path)) continue
      const code = readFileSync(join(ROOT, path), 'utf8').replace(/^\s*(\*|\/\*|\/\/).*$/gm, '')
      for (const [, group] of code.matchAll(/\bLIMITS\.(\w+)/g)) {
        const owner = roomOf(group!)!
        uses++
        if (owner !== room && !before.includes(owner)) wrong.push(`${path}: ${group}`)
      }
    }
  }
  t.strictSame(wrong, [])
  t.ok(uses > 300, `${uses} uses`)
})
