// The engines of a cluster by their names.

import { cassandra } from './cassandra/cassandra.mjs'
import { elasticsearch } from './elasticsearch/elasticsearch.mjs'
import { redis } from './redis/redis.mjs'

/** @typedef {import('./server-process.mjs').Engine} Engine */

/** @type {Record<'cassandra' | 'elasticsearch' | 'redis', Engine>} */
export const ENGINES = { cassandra, elasticsearch, redis }
