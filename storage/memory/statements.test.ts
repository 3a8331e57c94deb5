// The twins of control rows and segments pass the suites that Cassandra passes.

import t from 'tap'
import { controlConformance } from '../conformance/control.ts'
import { segmentsConformance } from '../conformance/segments.ts'
import { MemoryControl, MemorySegments, newStatementState } from './statements.ts'

void t.test('control', async (t) =>
  controlConformance(t, async (_, shards) => new MemoryControl(newStatementState(shards))),
)

void t.test('segments', async (t) =>
  segmentsConformance(t, async (_, shards) => new MemorySegments(newStatementState(shards))),
)

void t.test('a shard that the store does not have', async (t) => {
  const control = new MemoryControl(newStatementState(2))
  await t.rejects(control.shard(2), { message: 'shard 2 is not one of this store' })
})
