// Light or dark, as the system says or the user chose, and the colours that a canvas needs by name.

import { useEffect, useState } from "react";

export interface Theme {
  isDark: boolean;
  ink: string;
  quiet: string;
  line: string;
  accent: string;
  warm: string;
}

const LIGHT: Theme = { isDark: false, ink: "#22262b", quiet: "#5f666f", line: "#e2ded4", accent: "#2b6cb0", warm: "#d1603d" };
const DARK: Theme = { isDark: true, ink: "#d9dee4", quiet: "#9aa3ad", line: "#2b3138", accent: "#6ea8fe", warm: "#ef8660" };
const KEY = "htfi-theme";

export function useTheme(): [Theme, () => void] {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const [chosen, setChosen] = useState(localStorage.getItem(KEY));
  const [isSystemDark, setSystemDark] = useState(system.matches);
  useEffect(() => {
    const changed = () => setSystemDark(system.matches);
    system.addEventListener("change", changed);
    return () => system.removeEventListener("change", changed);
  });
  const isDark = chosen === null ? isSystemDark : chosen === "dark";
  useEffect(() => {
    document.documentElement.style.colorScheme = isDark ? "dark" : "light";
  }, [isDark]);
  const toggle = () => {
    const next = isDark ? "light" : "dark";
    localStorage.setItem(KEY, next);
    setChosen(next);
  };
  return [isDark ? DARK : LIGHT, toggle];
}
