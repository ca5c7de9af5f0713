// A worker of the queue `notifications__email`: says of each job, in a line of JSON, what it was given.
import { Worker } from "bullmq";

const { REDIS_PORT, REDIS_PASSWORD, REDIS_PREFIX, FORGETS } = process.env;
const worker = new Worker(
  "notifications__email",
  async (job) => {
    process.stdout.write(`${JSON.stringify({ id: job.id, name: job.name, data: job.data })}\n`);
  },
  {
    connection: { host: "127.0.0.1", port: Number(REDIS_PORT), password: REDIS_PASSWORD },
    prefix: REDIS_PREFIX,
    // A worker may want finished jobs gone at once.
    ...(FORGETS ? { removeOnComplete: { count: 0 } } : {}),
  },
);
worker.on("error", (error) => process.stderr.write(`${error.message}\n`));
worker.on("drained", () => process.stdout.write("drained\n"));
await worker.waitUntilReady();
process.stdout.write("ready\n");
process.stdin.on("end", async () => {
  await worker.close();
  process.exit(0);
});
process.stdin.resume();
