// Waits for a preview, which the server computes in the background.

const POLL = 1500; // milliseconds between two requests, in case an event is lost

/** Resolves to the finished preview, or to null once `wanted()` is false. `onProgress` gets its share done. */
export async function finishedPreview(api, events, id, { onProgress = () => {}, wanted = () => true } = {}) {
  let wake = () => {};
  const onEvent = (event) => event.job === id && wake();
  events.on("preview", onEvent);
  try {
    while (wanted()) {
      const job = await api.call("GET", `/preview/${id}`);
      if (job.done) return job;
      if (job.progress > 0) onProgress(job.progress);
      await new Promise((resolve) => {
        wake = resolve;
        setTimeout(resolve, POLL);
      });
    }
    return null;
  } finally {
    events.off("preview", onEvent);
  }
}
