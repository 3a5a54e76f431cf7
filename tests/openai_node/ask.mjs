// Asks the service at the address of the first argument by Node's own client; prints what it was answered as JSON.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [url, folder] = process.argv.slice(2);
const path = createRequire(`${folder}/`).resolve("openai");
const { default: OpenAI } = await import(pathToFileURL(path));
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
const asked = {
  model: "htfi-mini",
  messages: [{ role: "user", content: "What moved prices?" }],
  seed: 7,
  max_tokens: 24,
};

const whole = await client.chat.completions.create(asked);
const stream = await client.chat.completions.create({
  ...asked,
  stream: true,
  stream_options: { include_usage: true },
});
let streamed = "";
let usage = null;
for await (const piece of stream) {
  streamed += piece.choices[0]?.delta.content ?? "";
  usage = piece.usage ?? usage;
}
const form = {
  type: "json_schema",
  json_schema: {
    name: "side",
    strict: true,
    schema: {
      type: "object",
      properties: { side: { enum: ["up", "down"] } },
      required: ["side"],
      additionalProperties: false,
    },
  },
};
const document = await client.chat.completions.create({ ...asked, max_tokens: 40, response_format: form });
const points = await client.embeddings.create({ model: "htfi-encoder", input: ["oil rises", "oil falls"] });
const models = [];
for await (const one of client.models.list()) models.push(one.id);
let refused = null;
try {
  await client.chat.completions.create({ ...asked, temperature: 9 });
} catch (error) {
  refused = [error.constructor.name, error.status, error.param];
}
console.log(
  JSON.stringify({
    whole: whole.choices[0].message.content,
    streamed,
    usage: [usage.prompt_tokens, usage.completion_tokens],
    document: document.choices[0].message.content,
    sizes: points.data.map((one) => one.embedding.length),
    models,
    refused,
  }),
);
