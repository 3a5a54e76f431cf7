// Who asks: whoever can reach a service without keys, else who has signed in with a key.

import { useCallback, useEffect, useRef, useState } from "react";
import { get, post, ProblemError, refused, type Session } from "./api";

export interface Access {
  session: Session | null;
  isAsked: boolean; // a key is needed
  words: string; // why it is needed, or what is wrong with it
  signIn: (key: string) => Promise<void>;
  signOut: () => Promise<void>;
}

const AGAIN_MS = 1_000;
const ENDED = "The session has ended, or its key was revoked: sign in again.";

export function useSession(): Access {
  const [session, setSession] = useState<Session | null>(null);
  const [isAsked, setAsked] = useState(false);
  const [words, setWords] = useState("");
  const isIn = useRef(false);
  useEffect(() => {
    let again: ReturnType<typeof setTimeout> | undefined;
    let isClosed = false;
    const ask = async () => {
      try {
        const found = await get<Session>("v1/session");
        if (isClosed) return;
        isIn.current = true;
        setSession(found);
      } catch (error) {
        if (isClosed || error instanceof ProblemError) return;
        again = setTimeout(() => void ask(), AGAIN_MS);
      }
    };
    const isRefused = () => {
      if (isIn.current) setWords(ENDED);
      isIn.current = false;
      setSession(null);
      setAsked(true);
    };
    refused.addEventListener("refused", isRefused);
    void ask();
    return () => {
      isClosed = true;
      clearTimeout(again);
      refused.removeEventListener("refused", isRefused);
    };
  }, []);
  const signIn = useCallback(async (key: string) => {
    setWords("");
    try {
      setSession(await post<Session>("v1/session", { key }));
      isIn.current = true;
    } catch (error) {
      setWords(`${(error as Error).message}.`);
    }
  }, []);
  const signOut = useCallback(async () => {
    await fetch("v1/session", { method: "DELETE" }).catch(() => undefined);
    isIn.current = false;
    setSession(null);
    setAsked(true);
    setWords("You are signed out.");
  }, []);
  return { session, isAsked, words, signIn, signOut };
}
