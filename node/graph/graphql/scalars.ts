// The scalars of the GraphQL schema. All are answered as the graph answers them. Source: CONTRACT
// 1.4.1, https://www.graphql-scalars.com for what their names mean to clients.

import { GraphQLScalarType } from 'graphql'

const scalar = (name: string, description: string): GraphQLScalarType =>
  new GraphQLScalarType({ name, description })

export const DECIMAL = scalar('Decimal', 'A number, as exact as the graph has it.')
export const INSTANT = scalar('Instant', 'A moment as RFC 3339 text in UTC.')
export const DATE = scalar('Date', 'A day as RFC 3339 text, without a time.')
export const UUID = scalar('UUID', 'A UUID as RFC 9562 text in small letters.')
export const JSON_VALUE = scalar('JSON', 'Any JSON value.')
