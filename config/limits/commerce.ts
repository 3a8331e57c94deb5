// Bounds of the business: texts and numbers of every actor type, and how large an order may be.
// Part of LIMITS. Source: commerce/README.md.

const KiB = 1024

export const COMMERCE_LIMITS = {
  commerce: {
    /** What people write: a name, a description. */
    textCharsMax: 10_000,
    /** A key: what is found by it, or leads to an actor. */
    keyCharsMax: 200,
    /** A tag, a locale, the prefix of a number. */
    tagCharsMax: 100,
    /** One `dynamic` or `fields` of a command, as JSON text. */
    dynamicCharsMax: 64 * KiB,
    /** Prices, values and totals, in the currency's major unit. */
    amountMax: 1e12,
    /** Pieces of one line. */
    quantityMax: 1e9,
    /** Tax factors: 1 is 100 %. */
    factorMax: 1_000,
  },
  order: {
    /** Commands of one batch. */
    commandsMax: 10_000,
    /** Lines of one order, and so on. */
    linesMax: 10_000,
    deliveriesMax: 1_000,
    discountsMax: 10_000,
    /** Discounts on one line or shipping fee. */
    targetDiscountsMax: 100,
    /** Shares of order discounts: discounts of the whole order times lines and deliveries. */
    sharesMax: 100_000,
    returnsMax: 10_000,
    invoiceLinesMax: 20_000,
    /** `invoice` commands of one batch: each reckons the whole order. */
    batchInvoicesMax: 20,
    /** Tags of one order, or of one of its deliveries. */
    tagsMax: 100,
    /** SKUs of one line. */
    skusMax: 100,
    /** One member of an address. */
    addressCharsMax: 500,
    /** `commerce.amountMax` in minor units: so many are exact as JSON numbers in every currency. */
    amountUnitsMax: 1e15,
  },
} as const
