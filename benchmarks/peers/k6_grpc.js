// One unary call per iteration, on a connection of each user: the k6 twin of Grpc.
import grpc from 'k6/net/grpc';

const target = __ENV.BENCH_TARGET.replace('http://', '');
const client = new grpc.Client();

export const options = {
  scenarios: {
    all: { executor: 'constant-vus', vus: Number(__ENV.BENCH_VUS), duration: __ENV.BENCH_DURATION },
  },
};

export default function () {
  if (__ITER === 0) client.connect(target, { plaintext: true, reflect: true });
  const answer = client.invoke('hyperscale.Echo/Say', { text: 'hello' });
  if (answer.status !== grpc.StatusOK) throw new Error(`status ${answer.status}`);
}
