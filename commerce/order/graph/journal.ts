// The journal and the activity log of an order as people read them: entries made of the records,
// which alone keep them. Source: commerce/README.md "Journal", ARCHITECTURE 5.

import type { NodeDoc, RecordMeta } from '../../../protocol/behaviour.ts'
import { checkpointId, derivedId } from '../../../protocol/checkpoint.ts'
import { assert } from '../../../protocol/errors.ts'
import type { DynamicChanged, OrderRecord } from '../records/records.ts'
import type { BillableKind } from '../state/state.ts'
import { iso } from './project.ts'

/** Types of journal entries; those of promotions and payments come with them. */
export const JOURNAL_TYPES = [
  'orderCreated',
  'orderChanged',
  'orderStateChanged',
  'orderRewound',
  'orderDeleted',
  'deliveryCreated',
  'deliveryChanged',
  'deliveryStateChanged',
  'deliveryDeleted',
  'orderLineCreated',
  'orderLineChanged',
  'orderLineMoved',
  'orderLineSplit',
  'orderLineDeleted',
  'discountCreated',
  'discountChanged',
  'discountDeleted',
  'promotionCreated',
  'promotionDeleted',
  'promotionRecalculated',
  'returnCreated',
  'returnChanged',
  'returnDeleted',
  'releasedToInvoicing',
  'retractedFromInvoicing',
  'invoiceCreated',
  'invoiceCancelled',
  'paymentLinked',
  'paymentUnlinked',
  'captureCreated',
  'captureCompleted',
  'tagAdded',
  'tagRemoved',
  'addressChanged',
  'dynamicChanged',
] as const
export type JournalType = (typeof JOURNAL_TYPES)[number]

/** What an entry says; ids, time and author are the same for all. */
interface Saying {
  readonly type: JournalType
  readonly references: Readonly<Record<string, string>>
  readonly before?: object
  readonly after?: object
  readonly amount?: number
}

const ID_MEMBER: Readonly<Record<BillableKind | DynamicChanged['owner'], string>> = {
  order: 'orderId',
  delivery: 'deliveryId',
  orderLine: 'orderLineId',
  discount: 'discountId',
  return: 'returnId',
}

/** Journal and activity entries that a record shows, in order. */
export function history(record: OrderRecord, meta: RecordMeta): NodeDoc[] {
  if (record.t === 'totalsChanged') return []
  if (record.t === 'activityLogged') return [activityEntry(record, meta)]
  if (record.t === 'orderStateChanged') {
    const { from, to, deliveries = [] } = record
    const own: Saying = {
      type: 'orderStateChanged',
      references: {},
      before: { orderState: from },
      after: { orderState: to },
    }
    const moved = deliveries.map(([deliveryId, was, is]) => deliveryMoved(deliveryId, was, is))
    return [own, ...moved].map((entry, i) => journalEntry(entry, meta, i))
  }
  return [journalEntry(said(record), meta, 0)]
}

function journalEntry(entry: Saying, meta: RecordMeta, index: number): NodeDoc {
  const id = derivedId(`journal/${meta.actorId}/${meta.version}/${index}`, meta.timeMs)
  const timestamp = iso(meta.timeMs)
  const { type, references, before, after, amount } = entry
  const doc = {
    orderJournalEntryId: id,
    orderId: meta.actorId,
    timestamp,
    type,
    references: { orderId: meta.actorId, ...references },
    ...(before !== undefined && { before }),
    ...(after !== undefined && { after }),
    ...(amount !== undefined && { amount }),
    identityId: meta.by,
    checkpointId: checkpointId(meta.actorId, meta.messageId, meta.timeMs),
    lastModified: timestamp,
  }
  return { node: 'orderJournalEntry', id, doc }
}

function activityEntry(record: OrderRecord & { t: 'activityLogged' }, meta: RecordMeta): NodeDoc {
  const id = derivedId(`activity/${meta.actorId}/${meta.version}`, meta.timeMs)
  const createdAt = iso(meta.timeMs)
  const doc = {
    activityLogId: id,
    orderId: meta.actorId,
    messageTemplate: record.messageTemplate,
    message: record.message,
    dynamic: record.dynamic ?? {},
    createdAt,
    createdBy: meta.by,
    lastModified: createdAt,
  }
  return { node: 'activityLog', id, doc }
}

function deliveryMoved(deliveryId: string, from: string, to: string): Saying {
  return {
    type: 'deliveryStateChanged',
    references: { deliveryId },
    before: { deliveryState: from },
    after: { deliveryState: to },
  }
}

type RecordWithCommands = OrderRecord & { readonly commands?: unknown }

/** A record's own members, without its kind and what is of the message. */
function content(record: OrderRecord): object {
  const { t: _kind, commands: _commands, ...members } = record as RecordWithCommands
  return members
}

function said(record: OrderRecord): Saying {
  switch (record.t) {
    case 'orderCreated': {
      const { createdMs, ...after } = content(record) as { createdMs: number }
      return {
        type: 'orderCreated',
        references: {},
        after: { ...after, createdAt: iso(createdMs) },
      }
    }
    case 'orderChanged':
      return { type: 'orderChanged', references: {}, ...changes(record) }
    case 'deliveryCreated': {
      const { n: _n, ...after } = content(record) as { n: number }
      return { type: record.t, references: { deliveryId: record.deliveryId }, after }
    }
    case 'deliveryChanged':
      return { type: record.t, references: { deliveryId: record.deliveryId }, ...changes(record) }
    case 'deliveryStateChanged':
      return deliveryMoved(record.deliveryId, record.from, record.to)
    case 'deliveryDeleted':
      return {
        type: record.t,
        references: { deliveryId: record.deliveryId },
        before: content(record),
      }
    case 'tagAdded':
    case 'tagRemoved': {
      const references = ofDelivery(record.deliveryId)
      const tag = { tag: record.key }
      return record.t === 'tagAdded'
        ? { type: record.t, references, after: tag }
        : { type: record.t, references, before: tag }
    }
    case 'addressChanged':
      return { type: record.t, references: ofDelivery(record.deliveryId), ...changes(record) }
    case 'dynamicChanged':
      return {
        type: record.t,
        references: record.id === undefined ? {} : { [ID_MEMBER[record.owner]]: record.id },
        ...changes(record),
      }
    case 'rewound':
      return { type: 'orderRewound', references: { toCheckpointId: record.checkpointId } }
    case 'orderDeleted':
      return { type: 'orderDeleted', references: {} }
    default:
      return saidOfLines(record)
  }
}

function saidOfLines(record: OrderRecord): Saying {
  switch (record.t) {
    case 'orderLineCreated': {
      const references = { orderLineId: record.orderLineId, deliveryId: record.deliveryId }
      return { type: record.t, references, after: newLine(content(record)) }
    }
    case 'orderLineChanged':
      return { type: record.t, references: { orderLineId: record.orderLineId }, ...changes(record) }
    case 'orderLineMoved':
      return {
        type: record.t,
        references: { orderLineId: record.orderLineId, deliveryId: record.to },
        before: { deliveryId: record.from },
        after: { deliveryId: record.to },
      }
    case 'orderLineSplit': {
      const { orderLineId, line } = record
      return {
        type: record.t,
        references: { orderLineId, newOrderLineId: line.orderLineId, deliveryId: line.deliveryId },
        before: record.before,
        after: { ...record.after, newOrderLine: newLine(line) },
      }
    }
    case 'orderLineDeleted':
      return {
        type: record.t,
        references: { orderLineId: record.orderLineId },
        before: content(record),
      }
    case 'returnCreated':
      return { type: record.t, references: ofReturn(record), after: content(record) }
    case 'returnChanged':
      return { type: record.t, references: { returnId: record.returnId }, ...changes(record) }
    case 'returnDeleted':
      return { type: record.t, references: ofReturn(record), before: content(record) }
    default:
      return saidOfBilling(record)
  }
}

function saidOfBilling(record: OrderRecord): Saying {
  switch (record.t) {
    case 'discountCreated':
      return { type: record.t, references: ofDiscount(record), after: content(record) }
    case 'discountChanged':
      return { type: record.t, references: { discountId: record.discountId }, ...changes(record) }
    case 'discountDeleted':
      return { type: record.t, references: ofDiscount(record), before: content(record) }
    case 'releasedToInvoicing':
    case 'retractedFromInvoicing':
      return { type: record.t, references: { [ID_MEMBER[record.kind]]: record.id } }
    case 'invoiceCreated': {
      const { invoiceId, invoiceNumber, invoiceNetTotal, invoiceTaxTotal, lines } = record
      return {
        type: record.t,
        references: { invoiceId },
        after: { invoiceNumber, invoiceNetTotal, invoiceTaxTotal, lineCount: lines.length },
        amount: record.invoiceTotal,
      }
    }
    case 'invoiceCancelled':
      return {
        type: record.t,
        references: { invoiceId: record.invoiceId },
        before: { isCancelled: false },
        after: { isCancelled: true, invoiceNumber: record.invoiceNumber },
        amount: record.invoiceTotal === 0 ? 0 : -record.invoiceTotal,
      }
    default:
      assert(false, `no such record: ${record.t}`)
  }
}

function changes(record: { readonly before: object; readonly after: object }): {
  before: object
  after: object
} {
  return { before: record.before, after: record.after }
}

function newLine(line: { readonly n?: number }): object {
  const { n, ...members } = line
  return n === undefined ? members : { ...members, orderLineNumber: String(n) }
}

function ofDelivery(deliveryId: string | null): Record<string, string> {
  return deliveryId === null ? {} : { deliveryId }
}

function ofReturn(record: { returnId: string; orderLineId: string }): Record<string, string> {
  return { returnId: record.returnId, orderLineId: record.orderLineId }
}

function ofDiscount(record: {
  readonly discountId: string
  readonly scope: string
  readonly targetId?: string
}): Record<string, string> {
  const { discountId, scope, targetId } = record
  if (targetId === undefined) return { discountId }
  return { discountId, [scope === 'orderLine' ? 'orderLineId' : 'deliveryId']: targetId }
}
