// Unpacks the Chromium that lies in its npm package into TMPDIR, and prints how
// to run it: {"path": "…", "env": {…}}.
//
// The package is made for AWS Lambda, and unpacks the libraries and the fonts
// that a small system lacks only where AWS_LAMBDA_JS_RUNTIME names one.

import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

process.env.AWS_LAMBDA_JS_RUNTIME = 'nodejs20.x';
const { default: chromium } = await import('@sparticuz/chromium');
const path = await chromium.executablePath();

// Its configuration of the fonts has fixed paths in /tmp. Without any font, texts
// have no size, and nothing can be clicked.
const fonts = join(tmpdir(), 'fonts.conf');
writeFileSync(fonts, `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir>${join(tmpdir(), 'fonts')}</dir>
  <cachedir>${join(tmpdir(), 'fonts-cache')}</cachedir>
</fontconfig>
`);

console.log(JSON.stringify({
  path,
  env: { LD_LIBRARY_PATH: process.env.LD_LIBRARY_PATH, FONTCONFIG_FILE: fonts },
}));
