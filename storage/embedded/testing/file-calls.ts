// What is asked of the file system, in order: what was written, what of it was synced, and which
// names changed.

import fs from 'node:fs'
import fsp from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { basename } from 'node:path'

/** Calls such as "sync a", by the last part of each path; a rename by its target. */
export async function fileCalls(act: () => unknown): Promise<string[]> {
  const made: string[] = []
  const paths = new Map<number, string>()
  const tell = (what: string, path: unknown): void => void made.push(`${what} ${named(path)}`)
  const handle = await fsp.open(import.meta.filename)
  const handles = Object.getPrototypeOf(handle) as typeof handle
  const { sync } = handles
  await handle.close()
  const { openSync, writeSync, fsyncSync, renameSync, rmSync, truncateSync } = fs
  const { open, rename } = fsp
  Object.assign(fs, {
    openSync: (...args: Parameters<typeof openSync>) => {
      const fd = openSync(...args)
      paths.set(fd, String(args[0]))
      return fd
    },
    writeSync: (...args: Parameters<typeof writeSync>) => {
      tell('write', paths.get(args[0]))
      return writeSync(...args)
    },
    fsyncSync: (fd: number) => (tell('sync', paths.get(fd)), fsyncSync(fd)),
    renameSync: (from: string, to: string) => (tell('rename', to), renameSync(from, to)),
    rmSync: (...args: Parameters<typeof rmSync>) => (tell('remove', args[0]), rmSync(...args)),
    truncateSync: (path: string, bytes: number) => {
      tell('cut', path)
      truncateSync(path, bytes)
    },
  })
  fsp.open = async (...args) => {
    const opened = await open(...args)
    paths.set(opened.fd, String(args[0]))
    return opened
  }
  fsp.rename = async (from, to) => (tell('rename', to), rename(from, to))
  handles.sync = async function (this: typeof handle) {
    tell('sync', paths.get(this.fd))
    return sync.call(this)
  }
  syncBuiltinESMExports()
  try {
    await act()
  } finally {
    Object.assign(fs, { openSync, writeSync, fsyncSync, renameSync, rmSync, truncateSync })
    Object.assign(fsp, { open, rename })
    handles.sync = sync
    syncBuiltinESMExports()
  }
  return made
}

const named = (path: unknown): string => basename(String(path))
