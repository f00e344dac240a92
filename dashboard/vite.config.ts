import { defineConfig } from "vite";

// Relative addresses, so that the dashboard works behind a path prefix. File names without hashes keep the committed
// build easy to compare; the service sends them with an ETag.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/penstock/cluster/static",
    emptyOutDir: true,
    assetsDir: "",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: {
      output: {
        entryFileNames: "assets/dashboard.js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
  server: { proxy: { "/v1": process.env.PENSTOCK_URL ?? "http://127.0.0.1:8081" } },
});
