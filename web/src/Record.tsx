// The ledger: its size, the newest checkpoint, and a proof that the browser checks itself.

import { memo, useState } from "react";
import { get, type Health, type Proof } from "./api";
import { counted } from "./format";
import { checkProof, type Checked } from "./proof";

interface Props {
  health: Health | null;
  index: number | null;
}

const SIGNED = { true: "Its signature holds.", false: "Its signature does not hold.", null: "This browser cannot check its signature." };

export const Record = memo(function Record({ health, index }: Props) {
  const [said, setSaid] = useState("");
  const [isWrong, setWrong] = useState(false);
  const check = async () => {
    if (index === null) return;
    setSaid("Checking …");
    setWrong(false);
    try {
      const found: Checked = await checkProof(await get<Proof>(`v1/decisions/${index}/proof`));
      setWrong(found.isSigned === false);
      setSaid(
        `Decision ${index} is among the ${counted(found.size, "entry", "entries")} of the checkpoint with root ${found.root.slice(0, 12)}…: ` +
          `the hashes lead to it. ${SIGNED[String(found.isSigned) as keyof typeof SIGNED]}`,
      );
    } catch (error) {
      setWrong(true);
      setSaid(`The proof does not hold: ${(error as Error).message}`);
    }
  };
  return (
    <section aria-labelledby="record">
      <h2 id="record">Record</h2>
      <p>
        {health === null ? "…" : counted(health.num_entries, "entry", "entries")} in the ledger. <a href="checkpoint">checkpoint</a>
      </p>
      <button type="button" onClick={() => void check()} disabled={index === null}>
        Check decision {index ?? ""} in this browser
      </button>
      <p role="status" className={isWrong ? "wrong" : "quiet"}>
        {said}
      </p>
    </section>
  );
});
