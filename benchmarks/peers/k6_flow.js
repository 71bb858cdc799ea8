// Log in with JSON, read the token, send it in a header: the k6 twin of workflows.Flow.
import http from 'k6/http';

export { options } from './k6_options.js';

const target = __ENV.BENCH_TARGET;
const credentials = JSON.stringify({ user: 'ada', password: 'lovelace' });
const login = { headers: { 'Content-Type': 'application/json' } };

export default function () {
  const token = http.post(`${target}/login`, credentials, login).json().token;
  http.get(`${target}/me`, { headers: { Authorization: `Bearer ${token}` } });
}
