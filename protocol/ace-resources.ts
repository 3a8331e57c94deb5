// The resources that access entries name, with the permissions of each. Source: specification
// "Scopes and ACEs", CONTRACT 1.14.

/** Permissions by resource; null: any message type. The order is the one people are told. */
export const RESOURCES: Readonly<Record<string, readonly string[] | null>> = {
  actors: null,
  graph: ['query', 'field', 'explain', 'update-search'],
  reactor: ['read', 'write', 'invoke'],
  components: ['read', 'write'],
  jobs: ['read', 'write', 'schedule'],
  'job-definitions': ['read', 'write'],
  ingresses: ['read', 'write', 'http'],
  rules: ['read', 'write', 'delete'],
  sendings: ['read', 'write'],
  registry: ['read', 'write'],
  'iam/principals': ['read', 'write', 'delete'],
  'iam/clients': ['read', 'write', 'delete'],
  'iam/roles': ['read', 'write', 'delete'],
  apps: ['read', 'write'],
  files: ['read', 'write', 'delete'],
  enums: ['read', 'write'],
  inventories: ['read', 'write'],
  channels: ['read', 'write'],
  events: ['subscribe'],
  signals: ['read'],
  cluster: ['read', 'write'],
  me: ['read', 'write'],
}

/** Resources that are granted whole: nothing has a path below them. */
export const WHOLE: ReadonlySet<string> = new Set(['sendings', 'signals', 'cluster', 'me'])

/** `iam/clients` is one resource of two segments. */
export function resourceOf(segments: readonly string[]): string | null {
  const [first, second] = segments
  if (Object.hasOwn(RESOURCES, first!)) return first!
  const two = `${first}/${second}`
  return Object.hasOwn(RESOURCES, two) ? two : null
}
