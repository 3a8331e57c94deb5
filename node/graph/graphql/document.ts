// A document within its bounds: what it may have is counted before it is parsed, and what its
// fragments unfold to before it is validated, for both may take a time that grows faster than the
// text. Source: CONTRACT 1.4.1.

import {
  type DocumentNode,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  Lexer,
  type OperationDefinitionNode,
  type SelectionSetNode,
  Source,
  TokenKind,
  parse,
} from 'graphql'
import { LIMITS } from '../../../config/limits.ts'

/** Throws GraphQLError: it is no GraphQL, or past a bound. */
export function parseDocument(text: string): DocumentNode {
  const source = new Source(text, 'query')
  checkTokens(text, source)
  const document = parse(source, { maxTokens: LIMITS.graph.graphqlTokensMax })
  checkSelections(document)
  return document
}

/** The parser goes down by as many calls as brackets are open, and reads comments as tokens. */
function checkTokens(text: string, source: Source): void {
  const { graphqlTokensMax, graphqlBracketsMax } = LIMITS.graph
  const many = `The query has more than ${graphqlTokensMax} words, signs and comments`
  let tokens = 0
  for (let at = text.indexOf('#'); at >= 0; at = text.indexOf('#', at + 1)) {
    if (++tokens > graphqlTokensMax) throw new GraphQLError(many)
  }
  const lexer = new Lexer(source)
  let open = 0
  for (let token = lexer.advance(); token.kind !== TokenKind.EOF; token = lexer.advance()) {
    if (++tokens > graphqlTokensMax) throw new GraphQLError(many)
    if (OPENING.has(token.kind)) open++
    else if (CLOSING.has(token.kind)) open--
    if (open > graphqlBracketsMax) {
      throw new GraphQLError(
        `The query has more than ${graphqlBracketsMax} brackets in one another`,
      )
    }
  }
}

const OPENING: ReadonlySet<string> = new Set([
  TokenKind.BRACE_L,
  TokenKind.BRACKET_L,
  TokenKind.PAREN_L,
])
const CLOSING: ReadonlySet<string> = new Set([
  TokenKind.BRACE_R,
  TokenKind.BRACKET_R,
  TokenKind.PAREN_R,
])

/** What a selection set is with all its fragments in place. */
interface Unfolded {
  readonly selections: number
  readonly aliases: number
  /** Levels of fields. */
  readonly depth: number
}

function checkSelections(document: DocumentNode): void {
  const { graphqlDepthMax, graphqlAliasesMax, graphqlSelectionsMax } = LIMITS.graph
  const unfolding = new Unfolding(document)
  for (const one of document.definitions) {
    if (one.kind !== Kind.OPERATION_DEFINITION && one.kind !== Kind.FRAGMENT_DEFINITION) continue
    const { selections, aliases, depth } = unfolding.of(one)
    const refuse = (message: string): GraphQLError => new GraphQLError(message, { nodes: [one] })
    if (depth > graphqlDepthMax) {
      throw refuse(`The query nests deeper than ${graphqlDepthMax} fields, found ${depth}`)
    }
    if (aliases > graphqlAliasesMax) {
      throw refuse(`The query has more than ${graphqlAliasesMax} aliases, found ${aliases}`)
    }
    if (selections > graphqlSelectionsMax) {
      throw refuse(
        `The query selects more than ${graphqlSelectionsMax} fields, with its fragments in place`,
      )
    }
  }
}

class Unfolding {
  readonly #fragments = new Map<string, FragmentDefinitionNode>()
  /** Null: it is being unfolded. */
  readonly #known = new Map<string, Unfolded | null>()
  /** How often each name of the answer is written; who compares them compares each two. */
  readonly #names = new Map<string, number>()
  #directives = 0

  constructor(document: DocumentNode) {
    for (const one of document.definitions) {
      if (one.kind === Kind.FRAGMENT_DEFINITION) this.#fragments.set(one.name.value, one)
    }
  }

  of(one: OperationDefinitionNode | FragmentDefinitionNode): Unfolded {
    if (one.kind === Kind.FRAGMENT_DEFINITION) return this.#fragment(one)
    return this.#set(one.selectionSet)
  }

  #fragment(fragment: FragmentDefinitionNode): Unfolded {
    const name = fragment.name.value
    const known = this.#known.get(name)
    if (known === null) {
      throw new GraphQLError(`The fragment ${shown(name)} is a part of itself`, {
        nodes: [fragment],
      })
    }
    if (known !== undefined) return known
    this.#known.set(name, null)
    const unfolded = this.#set(fragment.selectionSet)
    this.#known.set(name, unfolded)
    return unfolded
  }

  #set({ selections }: SelectionSetNode): Unfolded {
    let [count, aliases, depth] = [0, 0, 0]
    for (const one of selections) {
      let below: Unfolded = NOTHING
      let level = 0
      this.#directives += one.directives?.length ?? 0
      if (this.#directives > LIMITS.graph.graphqlDirectivesMax) {
        throw new GraphQLError(
          `The query has more than ${LIMITS.graph.graphqlDirectivesMax} directives`,
        )
      }
      if (one.kind === Kind.FRAGMENT_SPREAD) {
        const fragment = this.#fragments.get(one.name.value)
        // One that isn't there is for validation to tell.
        if (fragment !== undefined) below = this.#fragment(fragment)
      } else {
        if (one.kind === Kind.FIELD) {
          level = 1
          if (one.alias !== undefined) aliases++
          this.#countName((one.alias ?? one.name).value)
        }
        if (one.selectionSet !== undefined) below = this.#set(one.selectionSet)
      }
      count += 1 + below.selections
      aliases += below.aliases
      depth = Math.max(depth, level + below.depth)
    }
    return { selections: count, aliases, depth }
  }

  #countName(name: string): void {
    if (name === '__proto__') throw new GraphQLError(`${name} can't be the name of a member`)
    const times = (this.#names.get(name) ?? 0) + 1
    this.#names.set(name, times)
    if (times > LIMITS.graph.graphqlNameTimesMax) {
      throw new GraphQLError(
        `The query has ${shown(name)} more than ${LIMITS.graph.graphqlNameTimesMax} times`,
      )
    }
  }
}

const NOTHING: Unfolded = { selections: 0, aliases: 0, depth: 0 }

const shown = (name: string): string => JSON.stringify(name.slice(0, 100))
