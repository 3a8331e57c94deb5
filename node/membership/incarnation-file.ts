// The incarnations of a member that began on this machine, in a file of its data directory: which
// process lived each, told so that no other can be taken for it. A member that crashed and starts
// again finds that the process before it is no more, and need not wait until its beats have stood
// still. Linux alone says enough (/proc); where it can't be known, in another container, on another
// machine, everybody waits. Source: PROTOCOL 3.3.1.

import { mkdirSync, readFileSync, readlinkSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FormerIncarnations } from '../../cluster/membership/former-incarnations.ts'
import type { Log } from '../../protocol/log.ts'
import { bootId } from '../boot.ts'

/** Lives that are remembered, the newest first. */
const INCARNATIONS_MAX = 8

/** A process as its machine tells it from all others that it ever ran. */
interface ProcessMark {
  /** Of one boot of one kernel. */
  readonly boot: string
  /** Namespace in which the number counts. */
  readonly namespace: string
  readonly pid: number
  /** When it began, in ticks since the boot. */
  readonly birth: string
}

interface NotedIncarnation {
  readonly incarnation: string
  readonly process: ProcessMark
}

export class IncarnationFile implements FormerIncarnations {
  readonly #path: string
  readonly #dir: string
  readonly #log: Log
  readonly #own: ProcessMark | null

  constructor({ dir, member, log }: { dir: string; member: string; log: Log }) {
    this.#dir = dir
    this.#path = join(dir, `lives-${member}.json`)
    this.#log = log
    this.#own = ownMark()
  }

  begins(incarnation: string): void {
    if (this.#own === null) return
    const incarnations = [{ incarnation, process: this.#own }, ...this.#read()]
    try {
      mkdirSync(this.#dir, { recursive: true })
      const partly = `${this.#path}.${process.pid}`
      writeFileSync(partly, JSON.stringify(incarnations.slice(0, INCARNATIONS_MAX)))
      renameSync(partly, this.#path)
    } catch (error) {
      this.#log.warn({ err: error }, 'a start after a crash will take longer: it can not be noted')
    }
  }

  isOver(incarnation: string): boolean {
    const own = this.#own
    const noted = this.#read().find((one) => one.incarnation === incarnation)
    if (own === null || noted === undefined) return false
    const { boot, namespace } = noted.process
    return boot === own.boot && namespace === own.namespace && hasEnded(noted.process)
  }

  #read(): readonly NotedIncarnation[] {
    try {
      return JSON.parse(readFileSync(this.#path, 'utf8')) as NotedIncarnation[]
    } catch {
      return []
    }
  }
}

/** null: this machine doesn't say. */
function ownMark(): ProcessMark | null {
  try {
    const boot = bootId()
    const namespace = readlinkSync('/proc/self/ns/pid')
    const birth = birthOf(process.pid)
    if (boot === null || birth === null) return null
    return { boot, namespace, pid: process.pid, birth }
  } catch {
    return null
  }
}

/** Certain: nothing of it will ever run again. */
function hasEnded({ pid, birth }: ProcessMark): boolean {
  try {
    // No signal: only asks whether there is such a process, whoever may see what of it.
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
  const is = birthOf(pid)
  return is !== null && is !== birth
}

/** When a process began; null: it can't be read. Field 22 of proc_pid_stat(5). */
function birthOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is the program's name and may hold anything.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null
  } catch {
    return null
  }
}
