// A cluster of two on the twins of journal and search engine, as tests of the cluster's index begin
// and end.

import type { Test } from 'tap'
import { SYSTEM_SHARD } from '../../../protocol/ids.ts'
import { ClusterScene, type TestMember } from './cluster-scene.ts'

export const TITLES = [{ edge: 'notebooks', orderBy: 'title', node: { fields: ['title'] } }]

export async function titles(s: ClusterScene, member: TestMember): Promise<string> {
  const { notebooks } = await s.ask(member, TITLES)
  return (notebooks as { title: string }[]).map(({ title }) => title).join(' ')
}

/** A cluster of two, whose index is ready: one has `system` and shard 0, the other shard 1. */
export async function two(s = new ClusterScene()): Promise<[ClusterScene, TestMember, TestMember]> {
  const members = [await s.start(SYSTEM_SHARD, 0), await s.start(1)] as const
  const isReady = await s.until(() => members.every(({ index }) => index.watch.generation > 0))
  if (!isReady) throw new Error(`the index is not ready: ${s.warnings.join('; ')}`)
  return [s, ...members]
}

/** In the end the index is what the actors are, and nothing was noted on the way but this. */
export async function end(t: Test, s: ClusterScene, ...warnings: RegExp[]): Promise<void> {
  await s.store.flush()
  const isRead = (): boolean => s.members.every(({ index }) => index.watch.generation > 0)
  t.equal(await s.until(() => s.isCaughtUp && isRead()), true, 'it catches up')
  t.strictSame(s.docs(), s.store.expected())
  const others = s.warnings.filter((text) => !warnings.some((known) => known.test(text)))
  t.strictSame(others, [])
  await s.close()
}
