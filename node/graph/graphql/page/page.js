// The page around GraphiQL: asks for a token and keeps it in memory only.

/* global document, location, fetch, React, ReactDOM, GraphiQL, graphqlWs, FormData, URLSearchParams */
;(() => {
  const form = document.getElementById('sign-in')
  const place = document.getElementById('graphiql')
  const refusal = document.getElementById('refusal')
  let token = ''
  let shown = false

  const tokenOf = async (client, secret) => {
    const body = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: client,
      client_secret: secret,
    })
    const response = await fetch('/oauth/token', { method: 'POST', body })
    const answer = await response.json()
    if (!response.ok) throw new Error(answer.error_description ?? answer.error ?? response.status)
    return answer.access_token
  }

  const ask = (message) => {
    refusal.textContent = message
    form.hidden = false
    place.hidden = true
  }

  const send = async (url, { headers, ...options }) => {
    const response = await fetch(url, {
      ...options,
      headers: {
        ...headers,
        Accept: 'application/graphql-response+json, application/json;q=0.9',
        Authorization: `Bearer ${token}`,
      },
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
  const fetcher = GraphiQL.createFetcher({ url: '/graphql', fetch: send, wsClient })

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
      const body = JSON.stringify({ query: '{ __typename }' })
      const headers = { 'Content-Type': 'application/json' }
      const { status } = await send('/graphql', { method: 'POST', headers, body })
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
})()
