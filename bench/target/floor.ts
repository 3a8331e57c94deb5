// A floor under load: a bare server of bench/floors in a process of its own, asked by the same
// generator with the same bytes as the node.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Destination } from '../load/requests.ts'
import { answers, Child, freePort } from './child.ts'
import { processUsage, type ProcessUsage } from './process-usage.ts'

export const FLOORS = {
  http: 'bare HTTP: uWebSockets.js, JSON.parse, a small answer',
  lmdb: 'the same and five events in a grouped LMDB commit, on disk before the answer',
} as const

export type FloorName = keyof typeof FLOORS

export class Floor {
  readonly to: Destination
  readonly #child: Child
  readonly #dir: string

  private constructor(to: Destination, child: Child, dir: string) {
    this.to = to
    this.#child = child
    this.#dir = dir
  }

  static async start(name: FloorName): Promise<Floor> {
    const dir = mkdtempSync(join(tmpdir(), `kontor-bench-floor-${name}-`))
    const port = await freePort()
    try {
      const child = await Child.start({
        file: `bench/floors/${name}.ts`,
        logFile: join(dir, 'floor.log'),
        env: { KONTOR_FLOOR_PORT: String(port), KONTOR_FLOOR_DIR: join(dir, 'data') },
        ready: () => answers(`http://127.0.0.1:${port}/health/ready`),
      })
      // As long a token as the node's, so that the bytes are the same.
      return new Floor({ host: '127.0.0.1', port, token: 'f'.repeat(64) }, child, dir)
    } catch (error) {
      rmSync(dir, { recursive: true, force: true })
      throw error
    }
  }

  usage(): ProcessUsage | null {
    return processUsage(this.#child.pid)
  }

  async stop(): Promise<void> {
    await this.#child.stop()
    rmSync(this.#dir, { recursive: true, force: true })
  }
}
