// Data inside a page, compressed.

async function unpack(id) {
  const element = byId(id);
  if (!element) throw new Error(`the page holds no ${id}; it was not saved whole`);
  const bytes = Uint8Array.from(atob(element.textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}
