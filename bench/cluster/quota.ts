// A CPU quota for one process and all its threads, by the kernel's cgroups (version 1 or 2): so
// that members of a cluster on one machine get what machines of their own would give them, and no
// more. Only root may write /sys/fs/cgroup.

import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Short enough that a member waits for its next share about as long as for a disk. */
const PERIOD_US = 20_000
const ROOT_V2 = '/sys/fs/cgroup'
const ROOTS_V1 = ['/sys/fs/cgroup/cpu', '/sys/fs/cgroup/cpu,cpuacct']

export interface Quotas {
  readonly version: 1 | 2
  /** Puts a process under a quota of its own, at first without a bound. */
  add(name: string, pid: number): Quota
  /** Removes the groups; their processes must have ended. */
  close(): void
}

export interface Quota {
  /** CPUs, 0.5 is half of one; null: no bound. */
  set(cpus: number | null): void
}

/** Throws with a message for people where quotas can't be given. */
export function openQuotas(name: string): Quotas {
  const v1 = ROOTS_V1.find((root) => existsSync(join(root, 'cpu.cfs_quota_us')) || hasV1(root))
  const base = v1 ?? rootV2()
  if (base === null) {
    throw new Error(
      'there is no CPU quota here: neither the cpu controller of cgroup v1 nor that of v2 is ' +
        'mounted under /sys/fs/cgroup, so members can not be held to a share',
    )
  }
  const dir = join(base, name)
  try {
    mkdirSync(dir)
    if (v1 === undefined) writeFileSync(join(dir, 'cgroup.subtree_control'), '+cpu')
  } catch (error) {
    throw new Error(`CPU quotas can not be set here (root may): ${(error as Error).message}`, {
      cause: error,
    })
  }
  const groups: string[] = []
  return {
    version: v1 === undefined ? 2 : 1,
    add(member, pid) {
      const group = join(dir, member)
      mkdirSync(group, { recursive: true })
      groups.push(group)
      writeFileSync(join(group, 'cgroup.procs'), String(pid))
      return v1 === undefined ? quotaV2(group) : quotaV1(group)
    },
    close() {
      for (const group of [...groups, dir]) removeGroup(group)
    },
  }
}

function hasV1(root: string): boolean {
  return existsSync(join(root, 'cpu.cfs_period_us'))
}

function rootV2(): string | null {
  const controllers = join(ROOT_V2, 'cgroup.controllers')
  if (!existsSync(controllers)) return null
  if (!readFileSync(controllers, 'utf8').split(/\s/).includes('cpu')) return null
  const control = join(ROOT_V2, 'cgroup.subtree_control')
  if (!readFileSync(control, 'utf8').split(/\s/).includes('cpu')) writeFileSync(control, '+cpu')
  return ROOT_V2
}

function quotaV1(group: string): Quota {
  writeFileSync(join(group, 'cpu.cfs_period_us'), String(PERIOD_US))
  return {
    set(cpus) {
      const us = cpus === null ? -1 : Math.round(cpus * PERIOD_US)
      writeFileSync(join(group, 'cpu.cfs_quota_us'), String(us))
    },
  }
}

function quotaV2(group: string): Quota {
  return {
    set(cpus) {
      const us = cpus === null ? 'max' : String(Math.round(cpus * PERIOD_US))
      writeFileSync(join(group, 'cpu.max'), `${us} ${PERIOD_US}`)
    },
  }
}

/** A process that has just ended may still be in it. */
function removeGroup(group: string): void {
  for (let i = 0; i < 50; i++) {
    try {
      rmdirSync(group)
      return
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EBUSY') return
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
    }
  }
}
