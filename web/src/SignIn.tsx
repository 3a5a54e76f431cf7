// A key is exchanged for a session; the page keeps neither.

import { useRef, useState, type FormEvent } from "react";
import type { Access } from "./useSession";

export function SignIn({ words, signIn }: Pick<Access, "words" | "signIn">) {
  const [key, setKey] = useState("");
  const [isAsking, setAsking] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const send = async (event: FormEvent) => {
    event.preventDefault();
    setAsking(true);
    await signIn(key.trim());
    setAsking(false);
    setKey("");
    field.current?.focus();
  };
  return (
    <main className="signing">
      <form onSubmit={(event) => void send(event)} aria-labelledby="sign-in">
        <h2 id="sign-in">Sign in</h2>
        <p className="quiet">The service asks for a key. An administrator makes one: htfi service keys add.</p>
        <label htmlFor="key">Key</label>
        <input
          ref={field}
          id="key"
          type="password"
          value={key}
          autoComplete="off"
          autoFocus
          spellCheck={false}
          maxLength={8_000}
          aria-describedby="sign-in-words"
          onChange={(event) => setKey(event.target.value)}
        />
        <p id="sign-in-words" role="alert" className="wrong">
          {words}
        </p>
        <button type="submit" className="main" disabled={isAsking || key.trim() === ""}>
          {isAsking ? "Asking …" : "Sign in"}
        </button>
      </form>
    </main>
  );
}
