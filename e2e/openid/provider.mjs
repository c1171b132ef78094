// An OpenID provider as an organisation runs it in addition to its registry:
// oidc-provider, which is certified, with the users and clients below.
//
// Environment: PORT on loopback, 0 or unset for any free port; AUDIENCE is the
// audience of access tokens. When it is ready, it prints {"issuer": "http://…"}.
// It exits when its standard input ends, so that no test can leave it behind.

import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import Provider, { errors } from 'oidc-provider';

// Any password is accepted.
const users = {
  alice: { groups: ['dev', 'ops'] },
  bob: {},
};

// Clients such as CI jobs, whose secret equals their ID. Tokens of the second one
// were issued a day ago, so they have already expired: tests need not wait.
const machines = {
  ci: {},
  'ci-of-yesterday': { ago: 24 * 60 * 60 },
};

const audience = process.env.AUDIENCE;
// Another service of the same organisation: the registry must refuse its tokens.
const elsewhere = 'https://elsewhere.example.test';

// A key for this run only: a restarted provider has another one.
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });

const configuration = {
  jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), alg: 'RS256', use: 'sig' }] },
  cookies: { keys: [randomBytes(32).toString('hex')] },
  pkce: { methods: ['S256'], required: () => true },

  clients: [
    {
      client_id: 'terraform-cli',
      token_endpoint_auth_method: 'none',
      // For native applications, the port of a loopback address is not
      // compared: Terraform uses any free port.
      application_type: 'native',
      redirect_uris: ['http://localhost/login', 'https://registry.example.com/_registry/callback'],
      post_logout_redirect_uris: ['https://registry.example.com/'],
    },
    {
      // For the pages of another registry alone.
      client_id: 'pages',
      client_secret: 'the secret of the pages',
      redirect_uris: ['https://confidential.example.com/registry/_registry/callback'],
    },
    ...Object.keys(machines).map((id) => ({
      client_id: id,
      client_secret: id,
      token_endpoint_auth_method: 'client_secret_basic',
      grant_types: ['client_credentials'],
      response_types: [],
      redirect_uris: [],
    })),
  ],

  findAccount: (ctx, id) => (users[id] ? { accountId: id, claims: () => ({ sub: id }) } : undefined),
  extraTokenClaims: (ctx, token) => ({ groups: users[token.accountId]?.groups }),
  formats: {
    customizers: {
      jwt(ctx, token, { payload }) {
        const ago = machines[token.clientId]?.ago ?? 0;
        payload.iat -= ago;
        payload.exp -= ago;
      },
    },
  },

  features: {
    devInteractions: { enabled: true }, // forms for login and consent
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      // Terraform does not request an audience for its token.
      defaultResource: (ctx, client, oneOf) => oneOf ?? audience,
      useGrantedResource: () => true,
      getResourceServerInfo(ctx, resource) {
        if (resource !== audience && resource !== elsewhere) {
          throw new errors.InvalidTarget();
        }
        return {
          audience: resource,
          scope: 'registry',
          accessTokenFormat: 'jwt',
          accessTokenTTL: 60 * 60,
          jwt: { sign: { alg: 'RS256' } },
        };
      },
    },
  },
};

const server = createServer().listen(Number(process.env.PORT ?? 0), '127.0.0.1');
await once(server, 'listening');
const provider = new Provider(`http://127.0.0.1:${server.address().port}`, configuration);
// Its forms want a font from the Internet.
provider.use(async (ctx, next) => {
  await next();
  if (typeof ctx.body === 'string') {
    ctx.body = ctx.body.replace(/@import url\([^)]*\);/g, '');
  }
});
for (const event of ['authorization.error', 'grant.error', 'server_error']) {
  provider.on(event, (ctx, error) => console.error(event, error));
}
server.on('request', provider.callback());
console.log(JSON.stringify({ issuer: provider.issuer }));
process.stdin.resume().on('end', () => process.exit());
