// A browser for tests: headless Chromium of an npm package, with the libraries and fonts that it
// needs, so a machine needs nothing of its own. Elsewhere than on Linux on x64 `CHROME_PATH` names
// one.

import chromium, { inflate } from '@sparticuz/chromium'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import puppeteer from 'puppeteer-core'
import type { Browser } from 'puppeteer-core'

/** What can't be had here is in nobody's way; nothing is asked of other hosts. */
const ARGS = [
  '--no-sandbox',
  '--no-zygote',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
]
const START_MS = 60_000

interface Place {
  readonly path: string
  readonly env: Readonly<Record<string, string>>
}

interface Owner {
  teardown(end: () => Promise<void>): void
}

/** A browser that ends with the test, with `more` switches; why there is none, where that is so. */
export async function openBrowser(
  t: Owner,
  more: readonly string[] = [],
): Promise<Browser | { readonly skipped: string }> {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-chromium-'))
  let browser: Browser | null = null
  t.teardown(async () => {
    await browser?.close()
    rmSync(dir, { recursive: true, force: true })
  })
  const found = await place(dir)
  if ('skipped' in found) return found
  browser = await puppeteer.launch({
    executablePath: found.path,
    headless: 'shell',
    args: [...ARGS, ...more],
    userDataDir: join(dir, 'profile'),
    timeout: START_MS,
    env: { ...process.env, HOME: dir, ...found.env },
  })
  return browser
}

async function place(dir: string): Promise<Place | { readonly skipped: string }> {
  const own = process.env['CHROME_PATH']
  if (own) return { path: own, env: {} }
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    return { skipped: 'set CHROME_PATH to a Chrome or Chromium: none comes for this system' }
  }
  return unpack(dir)
}

/** The package unpacks to the folder of temporary files: here to one that nobody else has. */
async function unpack(dir: string): Promise<Place> {
  const { resolve } = createRequire(import.meta.url)
  const archives = join(dirname(resolve('@sparticuz/chromium')), '..', 'bin')
  const former = process.env['TMPDIR']
  process.env['TMPDIR'] = dir
  try {
    const path = await chromium.executablePath(archives)
    const libraries = await inflate(join(archives, 'al2023.tar.br'))
    // The package's own file names folders of the machine that it was made for.
    const fonts = join(dir, 'fonts.conf')
    writeFileSync(fonts, fontConfig(dir))
    return { path, env: { LD_LIBRARY_PATH: join(libraries, 'lib'), FONTCONFIG_FILE: fonts } }
  } finally {
    if (former === undefined) delete process.env['TMPDIR']
    else process.env['TMPDIR'] = former
  }
}

function fontConfig(dir: string): string {
  const paths = `<dir>${join(dir, 'fonts')}</dir><cachedir>${join(dir, 'font-cache')}</cachedir>`
  const type = '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">'
  return `${type}<fontconfig>${paths}</fontconfig>`
}
