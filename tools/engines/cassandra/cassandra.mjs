// A one-node Apache Cassandra: the recipe that makes a server out of the jars on Maven Central.
// server-process.mjs starts and stops it. Its settings are the safe ones of PROTOCOL 3.1: nothing
// is acknowledged before the disk has it, Paxos v2. Needs Java 11 or 17 and Maven (as root of a
// Debian they are installed); ENGINES_JAVA_HOME names that Java.

import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CannotRun, cacheFolder, maven, needPrograms, once } from '../fetch.mjs'
import { answers, freePort, launchDetached } from '../server-process.mjs'

const HERE = dirname(fileURLToPath(import.meta.url))
const POM = join(HERE, 'pom.xml')
const VERSION = /<cassandra.version>([^<]+)</.exec(readFileSync(POM, 'utf8'))?.[1] ?? ''
const HOME = join(cacheFolder(), `cassandra-${VERSION}`)
/** Classes as the JVM had loaded them, written by the first run as it ends: 5 s become 3.5 s. */
const ARCHIVE = join(HOME, 'classes.jsa')
const JAVAS = new Set(['11', '17'])

/** A CQL OPTIONS frame; SUPPORTED comes back once the native protocol serves requests. */
const OPTIONS_FRAME = Buffer.from([4, 0, 0, 0, 5, 0, 0, 0, 0])
const SUPPORTED = 0x06

/** @type {import('../server-process.mjs').Engine} */
export const cassandra = {
  name: 'cassandra',
  program: 'java',
  async prepare() {
    await java()
    const isThere = () => existsSync(join(HOME, 'lib', `cassandra-all-${VERSION}.jar`))
    await once(`Cassandra ${VERSION}, 96 MB`, isThere, fetchJars)
  },
  async launch(options) {
    const { dir, port } = options
    const storagePort = await freePort()
    for (const folder of ['conf', 'logs', 'tmp']) {
      mkdirSync(join(dir, folder), { recursive: true })
    }
    const settings = readFileSync(join(HERE, 'cassandra.yaml'), 'utf8')
      .replaceAll('__PORT__', String(port))
      .replaceAll('__STORAGE_PORT__', String(storagePort))
      .replaceAll('__DIR__', dir)
    writeFileSync(join(dir, 'conf', 'cassandra.yaml'), settings)
    const archived = existsSync(ARCHIVE)
    const own = `${ARCHIVE}.${process.pid}`
    const argFile = join(dir, 'conf', 'java.args')
    const args = [...javaArgs(options), ...archiveArgs(archived, own), ...programArgs(dir)]
    writeFileSync(argFile, `${args.map(quoted).join('\n')}\n`)
    const logFile = join(dir, 'logs', 'stdout.log')
    return {
      ...launchDetached([await java(), `@${argFile}`], { cwd: dir, logFile }),
      version: VERSION,
      ...(archived ? null : { archive: own }),
    }
  },
  isReady: (port) => answers(port, OPTIONS_FRAME, (answer) => answer[4] === SUPPORTED),
  ended({ archive }) {
    if (archive !== undefined && existsSync(archive)) renameSync(archive, ARCHIVE)
  },
}

async function fetchJars() {
  mkdirSync(cacheFolder(), { recursive: true })
  const draft = mkdtempSync(join(cacheFolder(), '.cassandra-'))
  try {
    const lib = join(draft, 'lib')
    const words = ['dependency:copy-dependencies', `-DoutputDirectory=${lib}`]
    await maven(POM, [...words, '-DincludeScope=runtime'])
    rmSync(HOME, { recursive: true, force: true })
    renameSync(draft, HOME)
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

/**
 * Each keyspace that a suite leaves has its tables in the heap: half of it is full after a hundred.
 * @param {import('../server-process.mjs').StartOptions} options
 */
function javaArgs({ heap = '1g', optimize = false }) {
  return [
    ...lines('jvm17.options'),
    '-Xms128m',
    `-Xmx${heap}`,
    // Compiled once and quickly: what a short run wants.
    ...(optimize ? [] : ['-XX:TieredStopAtLevel=1']),
  ]
}

/**
 * @param {boolean} archived
 * @param {string} own path of the archive that is to be written
 */
function archiveArgs(archived, own) {
  const quiet = ['-Xlog:cds=off', '-Xlog:cds+dynamic=off', '-Xlog:class+path=off']
  if (archived) return [`-XX:SharedArchiveFile=${ARCHIVE}`, '-Xshare:auto', ...quiet]
  return [`-XX:ArchiveClassesAtExit=${own}`, ...quiet]
}

/** @param {string} dir */
function programArgs(dir) {
  const lib = join(HOME, 'lib')
  // No folder may stand on the class path, or classes aren't archived: settings go by their URL.
  const jars = readdirSync(lib).filter((file) => file.endsWith('.jar'))
  return [
    `-Dlogback.configurationFile=${join(HERE, 'logback.xml')}`,
    `-Dcassandra.logdir=${join(dir, 'logs')}`,
    `-Dcassandra.config=file://${join(dir, 'conf', 'cassandra.yaml')}`,
    `-Dcassandra.storagedir=${dir}`,
    `-Djava.io.tmpdir=${join(dir, 'tmp')}`,
    '-Dcassandra-foreground=yes',
    '-cp',
    jars
      .sort()
      .map((file) => join(lib, file))
      .join(':'),
    'org.apache.cassandra.service.CassandraDaemon',
  ]
}

/** The Java that Cassandra 5 runs on. */
async function java() {
  const home = process.env.ENGINES_JAVA_HOME
  if (home) return join(home, 'bin', 'java')
  await needPrograms(['java'], ['openjdk-17-jdk-headless'])
  const of = process.env.JAVA_HOME ? join(process.env.JAVA_HOME, 'bin', 'java') : 'java'
  const { stderr } = spawnSync(of, ['-version'])
  const major = /version "(\d+)/.exec(String(stderr))?.[1] ?? 'none'
  if (JAVAS.has(major)) return of
  throw new CannotRun(
    `Cassandra ${VERSION} runs on Java 11 or 17, here is ${major}: set ENGINES_JAVA_HOME`,
  )
}

/** @param {string} file */
function lines(file) {
  const text = readFileSync(join(HERE, file), 'utf8')
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
}

/**
 * As Java's argument files want it.
 *
 * @param {string} text
 */
function quoted(text) {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}
