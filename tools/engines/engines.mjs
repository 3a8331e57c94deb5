// The engines of a cluster by their names. It stands between the recipes and all that starts them.

import { cassandra } from './cassandra/cassandra.mjs'
import { elasticsearch } from './elasticsearch/elasticsearch.mjs'
import { redis } from './redis/redis.mjs'

/** @typedef {import('./server-process.mjs').Engine} Engine */

/** @type {Record<'cassandra' | 'elasticsearch' | 'redis', Engine>} */
export const ENGINES = { cassandra, elasticsearch, redis }
