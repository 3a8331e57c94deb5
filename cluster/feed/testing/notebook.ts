// A small actor type for tests of the feed: a notebook with notes that can be added, changed and
// erased, and records that break the fold or the projection on demand. It stands in for commerce/,
// of which the feed knows nothing.

import type { ActorRecord, Behaviour, NodeDoc, NodeRef } from '../../../protocol/behaviour.ts'
import type { NodeType } from '../../../protocol/graph/node-type.ts'

export interface Notebook {
  title: string
  closed: boolean
  broken: boolean
  readonly notes: Map<string, string>
}

/** Which records the type can't handle: a later version of it can. */
export interface Defects {
  fold: boolean
  project: boolean
}

const nodeTypes: readonly NodeType[] = [
  {
    name: 'notebook',
    set: 'notebooks',
    idField: 'notebookId',
    fields: [
      { name: 'notebookId', type: 'uuid' },
      { name: 'title', type: 'text', indexed: true },
      { name: 'size', type: 'number' },
    ],
    edges: [
      {
        name: 'notes',
        node: 'note',
        cardinality: 'many',
        from: 'notebookId',
        to: 'notebookId',
        sameActor: true,
      },
      {
        name: 'history',
        node: 'notebookRecord',
        cardinality: 'many',
        from: 'notebookId',
        to: 'notebookId',
        sameActor: true,
      },
    ],
    storage: { kind: 'row' },
    search: {
      fields: [{ path: ['title'], keyword: false }],
      edges: [{ edge: 'notes', fields: [{ path: ['text'], keyword: false }] }],
    },
  },
  {
    name: 'note',
    set: 'notes',
    idField: 'noteId',
    fields: [
      { name: 'noteId', type: 'text' },
      { name: 'notebookId', type: 'uuid', indexed: true },
      { name: 'text', type: 'text' },
    ],
    edges: [
      {
        name: 'notebook',
        node: 'notebook',
        cardinality: 'single',
        from: 'notebookId',
        to: 'notebookId',
        sameActor: true,
      },
    ],
    storage: { kind: 'row' },
    search: { fields: [{ path: ['text'], keyword: false }], edges: [] },
  },
  {
    name: 'notebookRecord',
    set: 'notebookRecords',
    idField: 'recordId',
    fields: [
      { name: 'recordId', type: 'text' },
      { name: 'notebookId', type: 'uuid' },
      { name: 'kind', type: 'text' },
      { name: 'version', type: 'number' },
    ],
    edges: [],
    storage: { kind: 'history', parent: 'notebook', parentField: 'notebookId' },
    search: { fields: [{ path: ['kind'], keyword: true }], edges: [] },
  },
]

function evolve(state: Notebook | null, record: ActorRecord, defects: Defects): Notebook {
  const next = state ?? { title: '', closed: false, broken: false, notes: new Map() }
  switch (record.t) {
    case 'opened':
      next.title = String(record['title'])
      break
    case 'noted':
      next.notes.set(String(record['id']), String(record['text']))
      break
    case 'erased':
      next.notes.delete(String(record['id']))
      break
    case 'closed':
      next.closed = true
      break
    case 'unfoldable':
      if (defects.fold) throw new Error('this record has no meaning')
      break
    case 'unshowable':
      next.broken = true
      break
    default:
      throw new Error(`unknown record ${record.t}`)
  }
  return next
}

function touched(record: ActorRecord, actorId: string): readonly NodeRef[] {
  const self = { node: 'notebook', id: actorId }
  if (record.t === 'noted' || record.t === 'erased') {
    return [self, { node: 'note', id: String(record['id']) }]
  }
  if (record.t !== 'closed') return [self]
  return [self, ...(record['notes'] as string[]).map((id) => ({ node: 'note', id }))]
}

function project(state: Notebook, ref: NodeRef, defects: Defects): NodeDoc | null {
  if (state.broken && defects.project) throw new Error('this state can not be shown')
  if (ref.node === 'notebook') {
    const doc = { notebookId: ref.id, title: state.title, size: state.notes.size }
    return { ...ref, doc }
  }
  const text = state.notes.get(ref.id)
  return text === undefined ? null : { ...ref, doc: { noteId: ref.id, text } }
}

/** The type; `defects` may be mended while it is in use. */
export function notebookBehaviour(defects: Defects): Behaviour<Notebook> {
  // A note leads to its notebook by the actor's id, which its state does not hold: kept beside.
  const ids = new WeakMap<Notebook, string>()
  return {
    type: 'notebook',
    home: 'shards',
    messageTypes: [],
    creates: [],
    isRead: () => false,
    check: () => null,
    chosenKey: () => null,
    mayTake: () => [],
    *decide() {
      return { ok: false, errors: [] }
    },
    evolve(state, record, meta) {
      const next = evolve(state, record, defects)
      ids.set(next, meta.actorId)
      return next
    },
    isDeleted: (state) => state.closed,
    keys: () => [],
    naturalKeys: () => [],
    toSnapshot: (state) => ({ ...state, notes: [...state.notes], id: ids.get(state) }),
    fromSnapshot(snapshot) {
      const { title, closed, broken, notes, id } = snapshot as Omit<Notebook, 'notes'> & {
        notes: [string, string][]
        id: string
      }
      const state = { title, closed, broken, notes: new Map(notes) }
      ids.set(state, id)
      return state
    },
    nodeTypes,
    touched,
    project(state, ref) {
      const node = project(state, ref, defects)
      if (node === null || node.node === 'notebook') return node
      return { ...node, doc: { ...node.doc, notebookId: ids.get(state) } }
    },
    nodes(state) {
      const notes = Array.from(state.notes.keys(), (id) => ({ node: 'note', id }))
      return [{ node: 'notebook', id: ids.get(state)! }, ...notes]
    },
    history(record, meta) {
      const id = `${meta.actorId}:${meta.version}`
      const doc = {
        recordId: id,
        notebookId: meta.actorId,
        kind: record.t,
        version: meta.version,
      }
      return [{ node: 'notebookRecord', id, doc }]
    },
  }
}
