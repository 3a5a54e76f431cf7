import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const OUT = "../src/htfi/apps/service/page";

// What the page was built from: a test compares it with what is there.
const sources = {
  name: "sources",
  closeBundle() {
    const names = ["index.html", "package-lock.json", ...readdirSync("src").map((name) => `src/${name}`)].sort();
    const lines = names.map((name) => `${createHash("sha256").update(readFileSync(name)).digest("hex")}  ${name}\n`);
    writeFileSync("sources.txt", lines.join(""));
  },
};

// The built page is committed and ships in the package, so that users need no node.
export default defineConfig({
  plugins: [react(), sources],
  base: "./",
  build: {
    outDir: OUT,
    emptyOutDir: true,
    assetsInlineLimit: 0, // the content security policy allows no data: script or style
    modulePreload: { polyfill: false },
    rollupOptions: {
      output: { entryFileNames: "assets/page.js", assetFileNames: "assets/page[extname]" },
    },
  },
  server: { proxy: { "/v1": "http://127.0.0.1:8350", "/checkpoint": "http://127.0.0.1:8350" } },
});
