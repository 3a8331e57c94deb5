// The direction of imports as rules for dependency-cruiser: a folder may use what stands before it in
// the layout, never what stands after it; a room, the rooms that are named for it.

/** What each top-level folder may import besides itself. */
const MAY_IMPORT = {
  protocol: [],
  config: ['protocol'],
  commerce: ['protocol', 'config'],
  storage: ['protocol', 'config'],
  cluster: ['protocol', 'config', 'storage'],
  node: ['protocol', 'config', 'commerce', 'storage', 'cluster'],
  tools: [],
  cli: ['protocol', 'tools'],
  bench: ['protocol'],
  examples: [],
}

/** The one door of each driver: which folders may import it. */
const DOORS = {
  'uWebSockets\\.js': ['node/http', 'bench/floors'],
  lmdb: ['storage/lmdb', 'bench/floors'],
  'node:sqlite': ['storage/sqlite', 'storage/embedded/directory-lock'],
  ioredis: ['cluster/redis'],
  'cassandra-driver': ['storage/cassandra', 'bench/cluster'],
  '@elastic/elasticsearch': ['storage/elastic'],
  'isolated-vm': ['node/components'],
  graphql: ['node/graph/graphql', 'node/live/graphql'],
  'graphql-ws': ['node/live/graphql'],
  jose: ['node/access'],
  oauth4webapi: ['node/access/external', 'cli/kontor'],
  nodemailer: ['node/sendings'],
  'cron-parser': ['node/jobs'],
}

/**
 * What a room may import of its top-level folder, besides the files that lie in that folder itself:
 * other rooms by name. A room that isn't here composes others, or is nobody's concern.
 */
const ROOMS = {
  'storage/segment-log': [],
  'storage/lmdb': ['storage/segment-log'],
  'storage/sqlite': [],
  'storage/cassandra': [],
  'storage/elastic': [],
  'storage/memory': ['storage/elastic'],
  'storage/embedded': ['storage/segment-log', 'storage/lmdb'],
  'commerce/actor': [],
  'commerce/order/state': ['commerce/actor', 'commerce/order/records'],
  'commerce/order/records': ['commerce/actor', 'commerce/order/state'],
  'commerce/order/totals': ['commerce/actor', 'commerce/order/records', 'commerce/order/state'],
  'commerce/order/graph': ['commerce/actor', 'commerce/order/records', 'commerce/order/state'],
  'cluster/sharding': [],
  'cluster/feed': [],
  'cluster/membership': [],
  'cluster/memory': [],
  'cluster/redis': ['cluster/memory'],
  'cluster/log': [],
  'cluster/routing': ['cluster/sharding'],
  'node/queues': [],
  'node/http': ['node/access', 'node/queues'],
  'node/access': ['node/http', 'node/queues'],
  'node/access/oauth': ['node/access', 'node/http'],
  'node/access/external': ['node/access', 'node/http', 'node/queues'],
  'node/access/oauth/pages': ['node/http'],
  'node/graph': ['node/access', 'node/http', 'node/queues'],
  'node/indexing': ['node/graph', 'node/http', 'node/queues'],
  'node/actors': ['node/access', 'node/http'],
  'node/me': ['node/access', 'node/http'],
  'node/access/administration': ['node/access'],
  'node/access/activity': ['node/access'],
  'node/iam': ['node/access', 'node/http'],
  'node/registry': ['node/access', 'node/http'],
  'node/health': ['node/http'],
  'node/live/socket': ['node/access', 'node/http', 'node/queues'],
  'node/live/events': ['node/live/socket', 'node/access', 'node/http', 'node/queues'],
  'node/live/queries': [
    ...['node/live/socket', 'node/access', 'node/graph', 'node/http', 'node/queues'],
  ],
  'node/live/graphql': [
    ...['node/live/queries', 'node/live/socket', 'node/access', 'node/graph', 'node/http'],
    'node/queues',
  ],
}

/** Tests may look at anything, and so may what only tests use. */
const TEST = '\\.test\\.ts$|/testing/|/conformance/|^test/'

/** Tools that open a store without being a node: they are let past their folder. */
const STORE_TOOLS = '^cli/(backup|verify-log|move|cassandra-options)'

/** What writes files of the tree from the program's own tables. */
const GENERATORS = '^tools/generate/'

/** Files that are let past the rule of their folder. */
const PAST = { cli: [STORE_TOOLS], tools: [GENERATORS] }

/** How a node is started, for the bench as for `npm start`. */
const NODE_FLAGS = '^tools/start/node-flags\\.mjs$'

function direction(folder) {
  const allowed = [folder, ...MAY_IMPORT[folder]]
  const others = Object.keys(MAY_IMPORT).filter((name) => !allowed.includes(name))
  return {
    name: `${folder}-imports-up`,
    comment: `${folder}/ may import ${allowed.join(', ')}; not ${others.join(', ')}`,
    severity: 'error',
    from: {
      path: `^${folder}/`,
      pathNot: [TEST, ...(PAST[folder] ?? [])],
    },
    to: {
      path: `^(${[...others, 'test'].join('|')})/`,
      ...(folder === 'bench' ? { pathNot: NODE_FLAGS } : {}),
    },
  }
}

function door([driver, folders]) {
  const core = driver.startsWith('node:')
  const name = driver.replace('\\', '')
  return {
    name: `door-${name.replace(/[^a-z]+/gi, '-').replace(/^-/, '')}`,
    comment: `${name} is imported in ${folders.join(' and ')} only`,
    severity: 'error',
    from: { pathNot: `^(test/|(${folders.join('|')})(/|-|\\.))` },
    to: {
      path: core ? `^(node:)?${driver.slice(5)}$` : `(^|/)node_modules/${driver}/|^${driver}$`,
    },
  }
}

function room([path, rooms]) {
  const top = path.split('/')[0]
  const inside = [path, ...rooms].map((name) => `${name}/`).join('|')
  return {
    name: `room-${path.replaceAll('/', '-')}`,
    comment: `${path}/ may import of ${top}/: its own files, those of no room, ${rooms.join(', ')}`,
    severity: 'error',
    from: { path: `^${path}/`, pathNot: TEST },
    to: { path: `^${top}/(?!testing/).*/`, pathNot: `^(${inside})` },
  }
}

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    ...Object.keys(MAY_IMPORT).map(direction),
    ...Object.entries(DOORS).map(door),
    ...Object.entries(ROOMS).map(room),
    {
      name: 'store-tools-open-stores',
      comment:
        'cli/backup, cli/verify-log and cli/move may open stores and know orders, but run no system',
      severity: 'error',
      from: { path: STORE_TOOLS, pathNot: TEST },
      to: { path: '^(cluster|node|bench|test)/' },
    },
    {
      name: 'actor-knows-no-type',
      comment:
        'commerce/actor is what all actor types share: it imports none of them, in no test either',
      severity: 'error',
      from: { path: '^commerce/actor/' },
      to: { path: '^commerce/(?!actor/)' },
    },
    {
      name: 'no-cycle',
      comment: 'two files that need each other are one file, or miss a third',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-test-imports',
      comment: 'what runs in production never imports a test or a harness',
      severity: 'error',
      from: { pathNot: TEST },
      to: { path: '\\.test\\.ts$|/testing/|/conformance/' },
    },
    {
      name: 'resolvable',
      comment: 'an import that leads nowhere',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'declared',
      comment: 'production imports dependencies of package.json; what runs the tests may have more',
      severity: 'error',
      from: {
        path: '^(protocol|config|commerce|storage|cluster|node|tools|cli)/',
        pathNot: `${TEST}|^tools/verify/`,
      },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'no-orphan',
      comment: 'a file that nothing imports and that imports nothing',
      severity: 'error',
      from: { orphan: true, pathNot: `${TEST}|^(cli|bench)/[^/]+\\.ts$|^node/main\\.ts$|/page/` },
      to: {},
    },
  ],
  options: {
    // TypeScript 7 has no compiler API for the cruiser: without swc it would see no module at all.
    parser: 'swc',
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: {
      extensions: ['.ts', '.mjs', '.js', '.json'],
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default'],
    },
  },
}
