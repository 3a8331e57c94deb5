// The page around GraphiQL: asks for a token and keeps it in memory only.

/* global document, location, fetch, React, ReactDOM, GraphiQL, graphqlWs, FormData */

import { tokenOf } from '../../../sign-in.mjs'

const form = document.getElementById('sign-in')
const place = document.getElementById('graphiql')
const refusal = document.getElementById('refusal')
let token = ''
let shown = false

const ask = (message) => {
  refusal.textContent = message
  form.hidden = false
  place.hidden = true
}

const post = async (parameters, headers) => {
  const response = await fetch('/graphql', {
    method: 'POST',
    headers: {
      ...headers,
      Accept: 'application/graphql-response+json, application/json;q=0.9',
      'Content-Type': 'application/json',
      Authorization: `Bearer ${token}`,
    },
    body: JSON.stringify(parameters),
  })
  if (response.status === 401) ask('The token is not good any more.')
  return response
}

const wsClient = graphqlWs.createClient({
  url: `${location.origin.replace(/^http/, 'ws')}/graphql`,
  connectionParams: () => ({ authorization: `Bearer ${token}` }),
  // 4403: the token has ended.
  shouldRetry: ({ code }) => code !== 4403,
  on: {
    closed: ({ code }) => code === 4403 && ask('The token is not good any more.'),
  },
})

/** Texts and comments left out, so that no word in them is taken for the document's own. */
const bare = (query) => query.replace(/"""[^]*?"""|"(?:\\.|[^"\\])*"|#.*/g, '')

/** Of what is sent, not of what GraphiQL knows of the document: that comes a moment later. */
const isSubscription = ({ query, operationName }) => {
  const found = bare(query).matchAll(/(?:^|\})\s*(query|mutation|subscription)\b\s*(\w*)/g)
  const operations = Array.from(found, ([, kind, name]) => ({ kind, name }))
  const meant = operationName
    ? operations.find(({ name }) => name === operationName)
    : operations.at(0)
  return meant?.kind === 'subscription'
}

const fetcher = async (parameters, { headers = {} } = {}) => {
  if (isSubscription(parameters)) return wsClient.iterate(parameters)
  const response = await post(parameters, headers)
  return response.json()
}

const show = () => {
  form.hidden = true
  place.hidden = false
  if (shown) return
  shown = true
  const defaultQuery = '# Ctrl-Enter runs it.\n{\n  __typename\n}\n'
  ReactDOM.createRoot(place).render(React.createElement(GraphiQL, { fetcher, defaultQuery }))
}

const signIn = async () => {
  const given = new FormData(form)
  try {
    token = given.get('token') || (await tokenOf(given.get('client'), given.get('secret')))
    const { status } = await post({ query: '{ __typename }' }, {})
    if (status === 401) throw new Error('The token is not good.')
    form.reset()
    show()
  } catch (error) {
    ask(error.message)
  }
}

form.addEventListener('submit', (event) => {
  event.preventDefault()
  void signIn()
})
