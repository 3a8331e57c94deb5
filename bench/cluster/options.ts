// Arguments of the bench's cluster scenarios.

import { parseArgs } from 'node:util'

export const CLUSTER_SCENARIOS = ['scale-out', 'handoff', 'takeover', 'cluster-soak'] as const
export type ClusterScenario = (typeof CLUSTER_SCENARIOS)[number]

export interface ClusterBenchOptions {
  readonly scenario: ClusterScenario
  readonly members: readonly number[]
  readonly quota: number | null
  readonly seconds: number
  readonly warmUpSeconds: number
  readonly connections: number
  readonly shards: number
  readonly runs: number
  readonly rate: number
  readonly minutes: number
  readonly out: string | null
}

export const CLUSTER_USAGE = `usage: npm run bench -- scale-out [options]
       npm run bench -- handoff [--runs N] [--rate N]
       npm run bench -- takeover [--runs N]
       npm run bench -- cluster-soak [--rate N] [--minutes N]

Starts Cassandra, Elasticsearch and Redis, and members of a cluster on them.

  scale-out   throughput, CPU and latencies at several numbers of members, each held to the same
              share of a CPU; the engines are outside the shares
  handoff     how long a shard is silent when a member joins or leaves
  takeover    how long until every shard answers when a member is killed
  cluster-soak  three members at a rate for minutes, with trimming and rolling of the log made
              frequent: latencies, and what the engines hold, over time

  --members LIST     of scale-out, default 1,2,4
  --quota N          CPUs of each member; default: the largest of some that leaves the machine 20 %
                     idle at the most members
  --seconds N        measured time of a run, default 10; --warm-up N before it, default 10; three
                     times as long before the first, and before the first handoff; in scale-out
                     so long for each of the members
  --connections N    to each member, default 32
  --shards N         default 16
  --runs N           runs at each number of members, or rounds, default 1
  --rate N           orders a second beside handoffs, default 100; of a soak, default 300
  --minutes N        of a soak, default 20
  --out FILE         writes the figures as JSON
`

export function isClusterScenario(name: string | undefined): name is ClusterScenario {
  return (CLUSTER_SCENARIOS as readonly (string | undefined)[]).includes(name)
}

export function parseClusterOptions(
  scenario: ClusterScenario,
  args: readonly string[],
): ClusterBenchOptions | { readonly problems: readonly string[] } {
  const number = (initial: string) => ({ type: 'string', default: initial }) as const
  let values
  try {
    ;({ values } = parseArgs({
      args: [...args],
      options: {
        members: number('1,2,4'),
        quota: { type: 'string' },
        seconds: number('10'),
        'warm-up': number('10'),
        connections: number('32'),
        shards: number('16'),
        runs: number('1'),
        rate: number(scenario === 'cluster-soak' ? '300' : '100'),
        minutes: number('20'),
        out: { type: 'string' },
      },
    }))
  } catch (error) {
    return { problems: [(error as Error).message] }
  }
  const problems: string[] = []
  const positive = (
    name: 'seconds' | 'connections' | 'shards' | 'runs' | 'rate' | 'minutes',
  ): number => {
    const n = Number(values[name])
    if (!(n > 0)) problems.push(`--${name} ${values[name]}: must be more than 0`)
    return n
  }
  const members = values.members.split(',').map(Number)
  const isRising = members.every((n, i) => Number.isInteger(n) && n > (members[i - 1] ?? 0))
  if (!isRising) problems.push(`--members ${values.members}: rising numbers, like 1,2,4`)
  const quota = values.quota === undefined ? null : Number(values.quota)
  if (quota !== null && !(quota > 0)) problems.push(`--quota ${values.quota}: CPUs, like 0.2`)
  const options = {
    scenario,
    members,
    quota,
    seconds: positive('seconds'),
    warmUpSeconds: Number(values['warm-up']),
    connections: positive('connections'),
    shards: positive('shards'),
    runs: positive('runs'),
    rate: positive('rate'),
    minutes: positive('minutes'),
    out: values.out ?? null,
  }
  return problems.length > 0 ? { problems } : options
}
