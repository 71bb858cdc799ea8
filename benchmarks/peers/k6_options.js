// What all k6 scripts here share: the users and the time come from the environment.
export const options = {
  scenarios: {
    all: { executor: 'constant-vus', vus: Number(__ENV.BENCH_VUS), duration: __ENV.BENCH_DURATION },
  },
  noConnectionReuse: false,
  discardResponseBodies: false,
  insecureSkipTLSVerify: true,
  thresholds: { http_req_failed: ['rate==0'] },
};
