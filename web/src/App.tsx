// The page: a header with the state of the run and the views, and the view that is looked at.

import { useCallback, useEffect, useRef, useState } from "react";
import { ActDialog, type Act } from "./ActDialog";
import type { Session } from "./api";
import { Bands } from "./Bands";
import { stopOf } from "./acts";
import { Forecasts } from "./Forecasts";
import type { Control } from "./governance";
import { News } from "./News";
import { Nodes } from "./Nodes";
import { Orders } from "./Orders";
import { People } from "./People";
import { SignIn } from "./SignIn";
import { useTheme, type Theme } from "./theme";
import { useRead } from "./useRead";
import { useRecord, type Live } from "./useRecord";
import { useSession, type Access } from "./useSession";
import { usePlace, VIEWS, type View } from "./views";

function stateOf(live: Live): [string, boolean] {
  const { health, isConnected } = live;
  if (health === null || (isConnected === null && health.status === "ok")) return ["Connecting …", true];
  if (health.status !== "ok") return [health.reason, false];
  if (!isConnected) return ["The stream has ended; connecting again …", false];
  return [health.is_running ? "The run goes on." : "The run has ended.", true];
}

export function App() {
  const access = useSession();
  const [theme, toggleTheme] = useTheme();
  const button = (
    <button type="button" onClick={toggleTheme} aria-label={theme.isDark ? "Light colours" : "Dark colours"}>
      {theme.isDark ? "Light" : "Dark"}
    </button>
  );
  if (access.session !== null) return <Signed access={access} session={access.session} theme={theme} themeButton={button} />;
  return (
    <>
      <header>
        <h1>HTFI</h1>
        <p role="status" className="quiet">
          {access.isAsked ? "" : "Connecting …"}
        </p>
        {button}
      </header>
      {access.isAsked ? <SignIn words={access.words} signIn={access.signIn} /> : <main />}
    </>
  );
}

interface Props {
  access: Access;
  session: Session;
  theme: Theme;
  themeButton: React.ReactNode;
}

function Signed({ access, session, theme, themeButton }: Props) {
  const live = useRecord();
  const place = usePlace();
  const chosen = useRef<string | null>(null);
  if (place.series !== null) chosen.current = place.series;
  const mayRead = session.scopes.includes("read");
  const mayAct = session.scopes.includes("act");
  const control = useRead<Control>(mayRead ? "v1/control" : null);
  const [act, setAct] = useState<Act | null>(null);
  const [said, setSaid] = useState("");
  const readControl = control.again;
  const done = useCallback(
    (words: string) => {
      setAct(null);
      setSaid(words);
      readControl();
    },
    [readControl],
  );
  useEffect(() => {
    document.title = place.view === "forecasts" ? "HTFI" : `${VIEWS[place.view]} – HTFI`;
    setSaid("");
  }, [place.view]);
  const [words, isWell] = stateOf(live);
  const isHeld = control.body !== null && (control.body.stops.length > 0 || control.body.has_stop_file);
  const acting = mayAct ? setAct : null;
  return (
    <>
      <header>
        <h1>HTFI</h1>
        <p role="status" className={isWell ? "quiet" : "wrong"}>
          {words}
        </p>
        {isHeld && (
          <a href="#/people" className="held">
            Releases are stopped
          </a>
        )}
        {mayAct && (
          <button type="button" className="stop" onClick={() => setAct(stopOf())}>
            Stop …
          </button>
        )}
        {session.tenant !== "" && (
          <button type="button" onClick={() => void access.signOut()}>
            Sign out<span className="hidden"> {session.name} of {session.tenant}</span>
          </button>
        )}
        {themeButton}
      </header>
      <nav aria-label="Views" className="views">
        {(Object.keys(VIEWS) as View[]).map((one) => (
          <a
            key={one}
            href={one === "forecasts" ? `#${encodeURIComponent(chosen.current ?? "")}` : `#/${one}`}
            aria-current={one === place.view ? "page" : undefined}
          >
            {VIEWS[one]}
          </a>
        ))}
      </nav>
      <p role="status" className={said === "" ? "hidden" : "said"}>
        {said}
      </p>
      {!mayRead ? (
        <main className="view">
          <p className="empty">This key has not the scope “read”: the page shows nothing.</p>
        </main>
      ) : place.view === "forecasts" ? (
        <Forecasts live={live} theme={theme} chosen={chosen.current} canAsk={session.scopes.includes("ask")} />
      ) : (
        <main className="view">
          {place.view === "people" && <People control={control} onAct={acting} isBusy={act !== null} />}
          {place.view === "news" && <News maySend={session.scopes.includes("news")} onSaid={setSaid} />}
          {place.view === "nodes" && <Nodes />}
          {place.view === "orders" && <Orders onAct={acting} />}
          {place.view === "bands" && <Bands series={live.series} />}
        </main>
      )}
      <footer>
        <p>
          Forecasts and their words are generated by models; <a href="v1/openapi.json">the interface</a> serves the same figures. Charts by{" "}
          <a href="https://www.tradingview.com/" rel="noreferrer">
            TradingView
          </a>{" "}
          Lightweight Charts.
        </p>
      </footer>
      {act !== null && (
        <ActDialog act={act} session={session} hasPeople={control.body?.has_people ?? false} onClose={() => setAct(null)} onDone={done} />
      )}
    </>
  );
}
