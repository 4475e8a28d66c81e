// Asks the server, and listens to it. A request that fails throws a Problem, which says why.

export class Problem extends Error {
  constructor(status, { message, hint, field } = {}) {
    super(message || (status ? `the server answered ${status}` : "the server does not answer"));
    this.status = status;
    this.hint = hint;
    this.field = field;
  }
}

const store = (value) => {
  try {
    if (value !== undefined) sessionStorage.setItem("token", value);
    return sessionStorage.getItem("token");
  } catch { return value; }
};
let token = store();
export const setToken = (value) => { token = value; store(value); };

async function request(path, options = {}) {
  const headers = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0);
  }
  if (!response.ok) {
    const told = await response.json().catch(() => ({}));
    throw new Problem(response.status, told.error);
  }
  return response;
}

export async function ask(path, params = {}, signal) {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value != null));
  return (await request(`api/${path}?${query}`, { signal })).json();
}

const SILENCE = 12000;

// Calls back with every event, for ever. `lost` gets the problem and the seconds until it tries again.
export async function listen({ picture, problem, lost }) {
  let id = null;
  let wait = 1;
  for (;;) {
    const gone = new AbortController();
    let alarm;
    try {
      const response = await request("api/live", { signal: gone.signal, headers: id ? { "Last-Event-ID": id } : {} });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ""; ;) {
        clearTimeout(alarm);
        alarm = setTimeout(() => gone.abort(), SILENCE);
        const { value, done } = await reader.read();
        if (done) break;
        const events = (rest + value).split("\n\n");
        rest = events.pop();
        for (const event of events) {
          const told = Object.fromEntries(event.split("\n").map((line) => line.split(/: (.*)/s).slice(0, 2)));
          if (!told.data) continue;
          id = told.id;
          wait = 1;
          try { (told.event === "problem" ? problem : picture)(JSON.parse(told.data)); } catch (error) { reportError(error); }
        }
      }
      throw new Problem(0);
    } catch (error) {
      clearTimeout(alarm);
      await lost(error instanceof Problem ? error : new Problem(0), wait);
      wait = Math.min(10, wait * 2);
    }
  }
}
